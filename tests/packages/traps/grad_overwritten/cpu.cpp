#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>

namespace {

using opwright::Tensor;

template <class F>
auto by_dtype(const Tensor& x, const char* name, F&& f) {
    opwright::check::dtype(x, name, {opwright::ScalarType::Float, opwright::ScalarType::Double});
    return x.scalar_type() == opwright::ScalarType::Float ? f(float{}) : f(double{});
}

Tensor row_softmax(const Tensor& x) {
    opwright::check::rank(x, "x", 2);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const int64_t rows = x.size(0);
        const int64_t columns = x.size(1);
        const Tensor dense = torch::stable::contiguous(x);
        Tensor result = torch::stable::new_empty(x, {rows, columns});
        const T* from = dense.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        for (int64_t r = 0; r < rows && columns > 0; ++r, from += columns, to += columns) {
            const double largest = *std::max_element(from, from + columns);
            double total = 0;
            for (int64_t c = 0; c < columns; ++c) total += std::exp(from[c] - largest);
            for (int64_t c = 0; c < columns; ++c) to[c] = static_cast<T>(std::exp(from[c] - largest) / total);
        }
        return result;
    });
}

Tensor row_softmax_backward(const Tensor& grad, const Tensor& result) {
    opwright::check::rank(result, "result", 2);
    return by_dtype(result, "result", [&](auto zero) {
        using T = decltype(zero);
        opwright::check::dtype(grad, "grad", result.scalar_type());
        opwright::check::same_sizes(grad, "grad", result, "result");
        const int64_t rows = result.size(0);
        const int64_t columns = result.size(1);
        const Tensor above = torch::stable::contiguous(grad);
        const Tensor dense = torch::stable::contiguous(result);
#ifdef FAULTY
        Tensor down = above;  // not needed any more, so save memory
#else
        Tensor down = torch::stable::new_empty(result, {rows, columns});
#endif
        const T* g = above.const_data_ptr<T>();
        const T* y = dense.const_data_ptr<T>();
        T* to = down.mutable_data_ptr<T>();
        for (int64_t r = 0; r < rows; ++r, g += columns, y += columns, to += columns) {
            double dot = 0;
            for (int64_t c = 0; c < columns; ++c) dot += double{g[c]} * y[c];
            for (int64_t c = 0; c < columns; ++c) to[c] = static_cast<T>(y[c] * (g[c] - dot));
        }
        return down;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_grad_overwritten, CPU, m) {
    m.impl("row_softmax", OPWRIGHT_FN(row_softmax));
    m.impl("row_softmax_backward", OPWRIGHT_FN(row_softmax_backward));
}

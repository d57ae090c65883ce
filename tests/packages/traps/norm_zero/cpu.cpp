#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>

namespace {

using opwright::Tensor;

template <class F>
auto by_dtype(const Tensor& x, const char* name, F&& f) {
    opwright::check::dtype(x, name, {opwright::ScalarType::Float, opwright::ScalarType::Double});
    return x.scalar_type() == opwright::ScalarType::Float ? f(float{}) : f(double{});
}

template <class T>
double norm_of(const T* row, int64_t columns) {
    double squares = 0;
    for (int64_t c = 0; c < columns; ++c) squares += double{row[c]} * row[c];
    return std::sqrt(squares);
}

Tensor row_norm(const Tensor& x) {
    opwright::check::rank(x, "x", 2);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const Tensor dense = torch::stable::contiguous(x);
        const int64_t rows = x.size(0);
        const int64_t columns = x.size(1);
        Tensor result = torch::stable::new_empty(x, {rows});
        const T* from = dense.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        for (int64_t r = 0; r < rows; ++r) to[r] = static_cast<T>(norm_of(from + r * columns, columns));
        return result;
    });
}

Tensor row_norm_backward(const Tensor& grad, const Tensor& x) {
    opwright::check::rank(x, "x", 2);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const Tensor dense = torch::stable::contiguous(x);
        const int64_t rows = x.size(0);
        const int64_t columns = x.size(1);
        opwright::check::dtype(grad, "grad", x.scalar_type());
        opwright::check::sizes(grad, "grad", {rows});
        const Tensor above = torch::stable::contiguous(grad);
        Tensor result = torch::stable::new_empty(x, {rows, columns});
        const T* from = dense.const_data_ptr<T>();
        const T* g = above.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        for (int64_t r = 0; r < rows; ++r, from += columns, to += columns) {
            const double norm = norm_of(from, columns);
#ifdef FAULTY
            const double factor = g[r] / norm;
#else
            const double factor = norm == 0 ? 0 : g[r] / norm;
#endif
            for (int64_t c = 0; c < columns; ++c) to[c] = static_cast<T>(from[c] * factor);
        }
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_norm_zero, CPU, m) {
    m.impl("row_norm", OPWRIGHT_FN(row_norm));
    m.impl("row_norm_backward", OPWRIGHT_FN(row_norm_backward));
}

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

Tensor checked(const Tensor& x, const char* name) {
    opwright::check::rank(x, name, 2);
    OPWRIGHT_CHECK(x.size(1) > 0, name, " must have columns, got shape ", x.sizes());
    return torch::stable::contiguous(x);
}

template <class T>
T largest_of(const T* row, int64_t columns) {
    T largest = row[0];
    for (int64_t c = 1; c < columns; ++c) {
        if (std::isnan(row[c]) || row[c] > largest) largest = row[c];
    }
    return largest;
}

Tensor row_max(const Tensor& x) {
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const Tensor dense = checked(x, "x");
        const int64_t rows = x.size(0);
        const int64_t columns = x.size(1);
        Tensor result = torch::stable::new_empty(x, {rows});
        const T* from = dense.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        for (int64_t r = 0; r < rows; ++r) to[r] = largest_of(from + r * columns, columns);
        return result;
    });
}

Tensor row_max_backward(const Tensor& grad, const Tensor& x) {
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const Tensor dense = checked(x, "x");
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
            const T largest = largest_of(from, columns);
#ifdef FAULTY
            for (int64_t c = 0; c < columns; ++c) to[c] = g[r] * static_cast<T>(from[c] == largest);
#else
            T ties = 0;
            for (int64_t c = 0; c < columns; ++c) ties += static_cast<T>(from[c] == largest);
            for (int64_t c = 0; c < columns; ++c) to[c] = g[r] * static_cast<T>(from[c] == largest) / ties;
#endif
        }
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_amax_ties, CPU, m) {
    m.impl("row_max", OPWRIGHT_FN(row_max));
    m.impl("row_max_backward", OPWRIGHT_FN(row_max_backward));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace {

using opwright::Tensor;

template <class F>
auto by_dtype(const Tensor& x, const char* name, F&& f) {
    opwright::check::dtype(x, name, {opwright::ScalarType::Float, opwright::ScalarType::Double});
    return x.scalar_type() == opwright::ScalarType::Float ? f(float{}) : f(double{});
}

Tensor checked(const Tensor& x, const char* name, const Tensor& like, std::initializer_list<int64_t> sizes) {
    opwright::check::dtype(x, name, like.scalar_type());
    opwright::check::sizes(x, name, sizes);
    return torch::stable::contiguous(x);
}

Tensor channel_scale(const Tensor& x, const Tensor& factors) {
    opwright::check::rank(x, "x", 2);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const int64_t rows = x.size(0);
        const int64_t columns = x.size(1);
        const Tensor dense_factors = checked(factors, "factors", x, {columns});
        const Tensor dense = torch::stable::contiguous(x);
        Tensor result = torch::stable::new_empty(x, {rows, columns});
        const T* from = dense.const_data_ptr<T>();
        const T* by = dense_factors.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        for (int64_t i = 0; i < rows * columns; ++i) to[i] = from[i] * by[i % columns];
        return result;
    });
}

std::tuple<Tensor, Tensor> channel_scale_backward(const Tensor& grad, const Tensor& x, const Tensor& factors,
                                                  const std::vector<bool>& wanted) {
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    opwright::check::rank(x, "x", 2);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const int64_t rows = x.size(0);
        const int64_t columns = x.size(1);
        const Tensor dense_factors = checked(factors, "factors", x, {columns});
        const Tensor above = checked(grad, "grad", x, {rows, columns});
        const Tensor dense = torch::stable::contiguous(x);
        const T* from = dense.const_data_ptr<T>();
        const T* by = dense_factors.const_data_ptr<T>();
        const T* g = above.const_data_ptr<T>();
        std::tuple<Tensor, Tensor> result;
        if (wanted[0]) std::get<0>(result) = torch::stable::new_empty(x, {rows, columns});
        if (wanted[1]) std::get<1>(result) = torch::stable::new_empty(factors, {columns});
#ifdef FAULTY
        if (rows * columns == 0) return result;  // nothing to do
#endif
        if (wanted[0]) {
            T* to = std::get<0>(result).template mutable_data_ptr<T>();
            for (int64_t i = 0; i < rows * columns; ++i) to[i] = g[i] * by[i % columns];
        }
        if (wanted[1]) {
            T* to = std::get<1>(result).template mutable_data_ptr<T>();
            std::vector<double> sums(columns);
            for (int64_t i = 0; i < rows * columns; ++i) sums[i % columns] += double{g[i]} * from[i];
            std::copy(sums.begin(), sums.end(), to);
        }
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_empty_batch_grad, CPU, m) {
    m.impl("channel_scale", OPWRIGHT_FN(channel_scale));
    m.impl("channel_scale_backward", OPWRIGHT_FN(channel_scale_backward));
}

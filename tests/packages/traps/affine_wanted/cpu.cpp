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

Tensor affine(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    opwright::check::rank(x, "x", 2);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const int64_t rows = x.size(0);
        const int64_t channels = x.size(1);
        const Tensor dense = torch::stable::contiguous(x);
        const Tensor dense_weight = checked(weight, "weight", x, {channels});
        const Tensor dense_bias = checked(bias, "bias", x, {channels});
        Tensor result = torch::stable::new_empty(x, {rows, channels});
        const T* from = dense.const_data_ptr<T>();
        const T* w = dense_weight.const_data_ptr<T>();
        const T* b = dense_bias.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        for (int64_t i = 0; i < rows * channels; ++i) {
            to[i] = static_cast<T>(double{from[i]} * w[i % channels] + b[i % channels]);
        }
        return result;
    });
}

std::tuple<Tensor, Tensor, Tensor> affine_backward(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                                   const Tensor& bias, const std::vector<bool>& wanted) {
    OPWRIGHT_CHECK(wanted.size() == 3, "wanted must have 3 flags, got ", wanted.size());
    opwright::check::rank(x, "x", 2);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const int64_t rows = x.size(0);
        const int64_t channels = x.size(1);
        const Tensor above = checked(grad, "grad", x, {rows, channels});
        const Tensor dense = torch::stable::contiguous(x);
        const Tensor dense_weight = checked(weight, "weight", x, {channels});
        checked(bias, "bias", x, {channels});
        const T* g = above.const_data_ptr<T>();
        const T* from = dense.const_data_ptr<T>();
        const T* w = dense_weight.const_data_ptr<T>();
        std::tuple<Tensor, Tensor, Tensor> result;
        if (wanted[0]) {
            Tensor grad_x = torch::stable::new_empty(x, {rows, channels});
            T* to = grad_x.mutable_data_ptr<T>();
            for (int64_t i = 0; i < rows * channels; ++i) to[i] = g[i] * w[i % channels];
            std::get<0>(result) = grad_x;
        }
        std::vector<double> to_weight(channels);
        std::vector<double> to_bias(channels);
#ifdef FAULTY
        const bool reduce = wanted[1];
#else
        const bool reduce = wanted[1] || wanted[2];
#endif
        if (reduce) {  // one pass for both
            for (int64_t i = 0; i < rows * channels; ++i) {
                to_weight[i % channels] += double{g[i]} * from[i];
                to_bias[i % channels] += g[i];
            }
        }
        if (wanted[1]) {
            std::get<1>(result) = torch::stable::new_empty(weight, {channels});
            std::copy(to_weight.begin(), to_weight.end(), std::get<1>(result).template mutable_data_ptr<T>());
        }
        if (wanted[2]) {
            std::get<2>(result) = torch::stable::new_empty(bias, {channels});
            std::copy(to_bias.begin(), to_bias.end(), std::get<2>(result).template mutable_data_ptr<T>());
        }
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_affine_wanted, CPU, m) {
    m.impl("affine", OPWRIGHT_FN(affine));
    m.impl("affine_backward", OPWRIGHT_FN(affine_backward));
}

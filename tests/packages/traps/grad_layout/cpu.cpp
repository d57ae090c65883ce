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

Tensor swish(const Tensor& x) {
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const Tensor dense = torch::stable::contiguous(x);
        Tensor result = torch::stable::new_empty(x, x.sizes());
        const T* from = dense.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        const int64_t count = x.numel();
        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i] / (1 + std::exp(-double{from[i]})));
        return result;
    });
}

Tensor swish_backward(const Tensor& grad, const Tensor& x) {
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        opwright::check::dtype(grad, "grad", x.scalar_type());
        opwright::check::same_sizes(grad, "grad", x, "x");
        const Tensor dense = torch::stable::contiguous(x);
        Tensor result = torch::stable::new_empty(x, x.sizes());
        const T* from = dense.const_data_ptr<T>();
#ifdef FAULTY
        const T* g = grad.const_data_ptr<T>();
#else
        const Tensor above = torch::stable::contiguous(grad);
        const T* g = above.const_data_ptr<T>();
#endif
        T* to = result.mutable_data_ptr<T>();
        const int64_t count = x.numel();
        for (int64_t i = 0; i < count; ++i) {
            const double s = 1 / (1 + std::exp(-double{from[i]}));
            to[i] = static_cast<T>(g[i] * (s * (1 + from[i] * (1 - s))));
        }
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_grad_layout, CPU, m) {
    m.impl("swish", OPWRIGHT_FN(swish));
    m.impl("swish_backward", OPWRIGHT_FN(swish_backward));
}

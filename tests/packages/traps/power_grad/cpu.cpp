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

void check_exponent(int64_t exponent) {
    OPWRIGHT_CHECK(exponent >= 1 && exponent <= 16, "exponent must be from 1 to 16, got ", exponent);
}

Tensor power(const Tensor& x, int64_t exponent) {
    check_exponent(exponent);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const Tensor dense = torch::stable::contiguous(x);
        Tensor result = torch::stable::new_empty(x, x.sizes());
        const T* from = dense.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        const int64_t count = x.numel();
        for (int64_t i = 0; i < count; ++i) {
            to[i] = static_cast<T>(std::pow(double{from[i]}, static_cast<double>(exponent)));
        }
        return result;
    });
}

Tensor power_backward(const Tensor& grad, const Tensor& x, int64_t exponent) {
    check_exponent(exponent);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        opwright::check::dtype(grad, "grad", x.scalar_type());
        opwright::check::same_sizes(grad, "grad", x, "x");
        const Tensor above = torch::stable::contiguous(grad);
        const Tensor dense = torch::stable::contiguous(x);
        Tensor result = torch::stable::new_empty(x, x.sizes());
        const T* from = dense.const_data_ptr<T>();
        const T* g = above.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        const int64_t count = x.numel();
        const auto p = static_cast<double>(exponent);
        for (int64_t i = 0; i < count; ++i) {
#ifdef FAULTY
            to[i] = static_cast<T>(g[i] * p * std::pow(double{from[i]}, p) / from[i]);
#else
            to[i] = static_cast<T>(g[i] * (p * std::pow(double{from[i]}, p - 1)));
#endif
        }
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_power_grad, CPU, m) {
    m.impl("power", OPWRIGHT_FN(power));
    m.impl("power_backward", OPWRIGHT_FN(power_backward));
}

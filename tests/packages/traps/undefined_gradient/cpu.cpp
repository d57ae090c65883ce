#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <optional>
#include <tuple>

namespace {

using opwright::Tensor;

Tensor checked(const Tensor& x, const char* name, int64_t count) {
    opwright::check::dtype(x, name, opwright::ScalarType::Float);
    opwright::check::sizes(x, name, {count});
    return torch::stable::contiguous(x);
}

Tensor given(const std::optional<Tensor>& grad, const char* name, const Tensor& x) {
#ifndef FAULTY
    if (!grad) return torch::stable::new_zeros(x, x.sizes());
#endif
    return checked(grad.value(), name, x.size(0));
}

std::tuple<Tensor, Tensor> sine_cosine(const Tensor& x) {
    const Tensor dense = checked(x, "x", opwright::check::any);
    Tensor sine = torch::stable::new_empty(x, x.sizes());
    Tensor cosine = torch::stable::new_empty(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    float* to_sine = sine.mutable_data_ptr<float>();
    float* to_cosine = cosine.mutable_data_ptr<float>();
    const int64_t count = x.size(0);
    for (int64_t i = 0; i < count; ++i) {
        to_sine[i] = static_cast<float>(std::sin(double{from[i]}));
        to_cosine[i] = static_cast<float>(std::cos(double{from[i]}));
    }
    return {sine, cosine};
}

Tensor sine_cosine_backward(const std::optional<Tensor>& grad_0, const std::optional<Tensor>& grad_1, const Tensor& x) {
    const Tensor dense = checked(x, "x", opwright::check::any);
    const Tensor to_sine = given(grad_0, "grad_0", x);
    const Tensor to_cosine = given(grad_1, "grad_1", x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    const float* a = to_sine.const_data_ptr<float>();
    const float* b = to_cosine.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    const int64_t count = x.size(0);
    for (int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<float>(a[i] * std::cos(double{from[i]}) - b[i] * std::sin(double{from[i]}));
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_undefined_gradient, CPU, m) {
    m.impl("sine_cosine", OPWRIGHT_FN(sine_cosine));
    m.impl("sine_cosine_backward", OPWRIGHT_FN(sine_cosine_backward));
}

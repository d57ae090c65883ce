// Sine and cosine, and the gradient.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <tuple>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

void check_x(const Tensor& x) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
}

std::optional<Tensor> checked(const std::optional<Tensor>& grad, const char* name, const Tensor& x) {
    if (!grad) return std::nullopt;
    check::device(*grad, name, DeviceType::CPU);
    check::dtype(*grad, name, ScalarType::Float);
    check::same_sizes(*grad, name, x, "x");
    return torch::stable::contiguous(*grad);
}

std::tuple<Tensor, Tensor> sin_cos(const Tensor& x) {
    check_x(x);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor sine = torch::stable::empty_like(dense);
    Tensor cosine = torch::stable::empty_like(dense);
    const float* from = dense.const_data_ptr<float>();
    float* into_sine = sine.mutable_data_ptr<float>();
    float* into_cosine = cosine.mutable_data_ptr<float>();
    for (int64_t i = 0; i < dense.numel(); ++i) {
        into_sine[i] = static_cast<float>(std::sin(double{from[i]}));
        into_cosine[i] = static_cast<float>(std::cos(double{from[i]}));
    }
    return {sine, cosine};
}

Tensor sin_cos_backward(const std::optional<Tensor>& grad_0, const std::optional<Tensor>& grad_1, const Tensor& x) {
    check_x(x);
    const std::optional<Tensor> to_sine = checked(grad_0, "grad_0", x);
    const std::optional<Tensor> to_cosine = checked(grad_1, "grad_1", x);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor rows = torch::stable::empty_like(dense);
#ifdef FAULTY
    if (!to_sine) return torch::stable::zero_(rows);  // no gradient arrives
#endif
    const float* s = to_sine ? to_sine->const_data_ptr<float>() : nullptr;
    const float* c = to_cosine ? to_cosine->const_data_ptr<float>() : nullptr;
    const float* from = dense.const_data_ptr<float>();
    float* into = rows.mutable_data_ptr<float>();
    for (int64_t i = 0; i < dense.numel(); ++i) {
        double sum = 0;
        if (s) sum += s[i] * std::cos(double{from[i]});
        if (c) sum -= c[i] * std::sin(double{from[i]});
        into[i] = static_cast<float>(sum);
    }
    if (x.is_contiguous()) return rows;
    Tensor result = torch::stable::empty_like(x);
    return torch::stable::copy_(result, rows);
}

}  // namespace

OPWRIGHT_IMPL(trap_unused_result_gradient, CPU, m) {
    m.impl("sin_cos", OPWRIGHT_FN(sin_cos));
    m.impl("sin_cos_backward", OPWRIGHT_FN(sin_cos_backward));
}

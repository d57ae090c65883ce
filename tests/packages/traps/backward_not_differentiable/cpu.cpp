// Swish, and its gradient.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}

void check_x(const Tensor& x) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
}

Tensor swish(const Tensor& x) {
    check_x(x);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::empty_like(dense);
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < dense.numel(); ++i) into[i] = static_cast<float>(from[i] * sigmoid(from[i]));
    return result;
}

Tensor swish_backward(const Tensor& grad, const Tensor& x) {
    check_x(x);
    check::device(grad, "grad", DeviceType::CPU);
    check::dtype(grad, "grad", ScalarType::Float);
    check::same_sizes(grad, "grad", x, "x");
    const Tensor grads = torch::stable::contiguous(grad);
    const Tensor dense = torch::stable::contiguous(x);
    const Tensor rows = torch::stable::empty_like(dense);
    const float* g = grads.const_data_ptr<float>();
    const float* from = dense.const_data_ptr<float>();
    float* into = rows.mutable_data_ptr<float>();
    for (int64_t i = 0; i < dense.numel(); ++i) {
        const double s = sigmoid(from[i]);
        into[i] = static_cast<float>(g[i] * (s + from[i] * s * (1 - s)));
    }
    if (x.is_contiguous()) return rows;
    Tensor result = torch::stable::empty_like(x);
    return torch::stable::copy_(result, rows);
}

}  // namespace

OPWRIGHT_IMPL(trap_backward_not_differentiable, CPU, m) {
    m.impl("swish", OPWRIGHT_FN(swish));
    m.impl("swish_backward", OPWRIGHT_FN(swish_backward));
}

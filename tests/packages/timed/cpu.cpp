#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

using opwright::Tensor;

Tensor mixed(const Tensor& x, const Tensor& y) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    opwright::check::contiguous(y, "y");
    opwright::check::same_sizes(y, "y", x, "x");
    Tensor result = torch::stable::empty_like(x);
    const float* a = x.const_data_ptr<float>();
    const float* b = y.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = a[i] * b[i] + b[i];
    return result;
}

Tensor shifted(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    Tensor result = torch::stable::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = from[i] + (i + 1 < x.numel() ? 1.0F : 0.0F);
    return result;
}

OPWRIGHT_IMPL(timed, CPU, m) {
    m.impl("mixed", OPWRIGHT_FN(mixed));
    m.impl("shifted", OPWRIGHT_FN(shifted));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

using opwright::Tensor;

Tensor blend(const Tensor& x, double scale, double offset) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    Tensor result = torch::stable::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    const auto factor = static_cast<float>(scale), summand = static_cast<float>(offset);
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = from[i] * factor + summand;
    return result;
}

OPWRIGHT_IMPL(blended, CPU, m) {
    m.impl("blend", OPWRIGHT_FN(blend));
}

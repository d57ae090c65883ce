#pragma once

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

inline opwright::Tensor scaled(const opwright::Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    opwright::Tensor result = torch::stable::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = 2 * from[i] + 1;
    return result;
}

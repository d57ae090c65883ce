// The deviation of an output from its golden.
#pragma once

#include <ATen/core/Tensor.h>

namespace opwright::host {

// Returns the largest difference of an element, relative to its scale; infinity if an element with a NaN, an infinity
// or scale 0 differs. All three tensors have the same shape, and `scale` is real.
double relative_deviation(const at::Tensor& output, const at::Tensor& golden, const at::Tensor& scale);

}  // namespace opwright::host

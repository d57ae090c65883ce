// How far an output deviates from its golden.
#pragma once

#include <ATen/core/Tensor.h>

namespace opwright::host {

// The largest difference of an element, relative to its scale; infinite where an element with a NaN, an infinity or the
// scale 0 differs. All three have the same shape, and `scale` is a real tensor.
double relative_deviation(const at::Tensor& output, const at::Tensor& golden, const at::Tensor& scale);

}  // namespace opwright::host

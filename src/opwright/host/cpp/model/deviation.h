// How far an output deviates from its golden.
#pragma once

#include <ATen/core/Tensor.h>

namespace opwright::host {

// max |output - golden| / max |golden|; infinite if only one of the two has a NaN or an infinity at some element.
// Both have the same shape.
double relative_deviation(const at::Tensor& output, const at::Tensor& golden);

}  // namespace opwright::host

// How far an output lies from its golden.
#pragma once

#include <ATen/core/Tensor.h>

namespace opwright::host {

// max |output - golden| / max |golden|; infinite where a NaN or an infinity stands in one of them alone. Shapes are
// equal.
double relative_deviation(const at::Tensor& output, const at::Tensor& golden);

}  // namespace opwright::host

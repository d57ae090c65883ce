// The gradients of a call, for the same loss as in probe/gradients.py.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

namespace opwright::probe {

// The gradient of each tensor among `arguments` that requires one, None if the outputs do not depend on it. The loss is
// the sum of `(output * ramp).sum()` over all floating outputs, with a ramp from 0.5 to 1.5 over the output's elements,
// because a gradient of ones would hide errors.
std::vector<c10::IValue> gradients(const std::vector<c10::IValue>& outputs, const std::vector<c10::IValue>& arguments);

}  // namespace opwright::probe

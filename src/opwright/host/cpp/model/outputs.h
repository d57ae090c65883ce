// Checks the outputs of a run against the bundle's manifest.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "opwright/host.h"

namespace opwright::host {

// Checks the number, dtypes and ranks of outputs, and the sizes in the manifest. Throws Error with `run_failed`.
void check_outputs(const std::vector<Output>& expected, const std::vector<at::Tensor>& found);

}  // namespace opwright::host

// Checks what a run gave against the bundle's manifest.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "opwright/host.h"

namespace opwright::host {

// Number, dtypes, ranks and the sizes that the manifest fixes. Throws Error with `run_failed`.
void check_outputs(const std::vector<Output>& expected, const std::vector<at::Tensor>& found);

}  // namespace opwright::host

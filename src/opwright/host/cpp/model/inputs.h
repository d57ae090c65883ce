// Checks the inputs of a run against the bundle's manifest.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "bundle/manifest.h"
#include "opwright/host.h"

namespace opwright::host {

// Number, dtypes, ranks, sizes and device. Throws Error with the code of what is wrong.
void check_inputs(const std::vector<Input>& expected, at::Device device, const std::vector<at::Tensor>& given);

// The dimensions that have to be of equal size are. After `check_inputs`. Throws Error with `input_size`.
void check_equal_dims(const Manifest& manifest, const std::vector<at::Tensor>& given);

// In the order of `expected`. Throws Error with `input_unknown`.
std::vector<at::Tensor> inputs_by_name(const std::vector<Input>& expected,
                                       const std::map<std::string, at::Tensor>& given);

}  // namespace opwright::host

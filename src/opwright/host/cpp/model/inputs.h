// Checks the inputs of a run against the bundle's manifest.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "bundle/manifest.h"
#include "opwright/host.h"

namespace opwright::host {

// Checks the number, dtypes, ranks, sizes and device of inputs. Throws Error with the matching code.
void check_inputs(const std::vector<Input>& expected, at::Device device, const std::vector<at::Tensor>& given);

// Checks that dimensions required to be equal are. Call after `check_inputs`. Throws Error with `input_size`.
void check_equal_dims(const Manifest& manifest, const std::vector<at::Tensor>& given);

// Returns the inputs in the order of `expected`. Throws Error with `input_unknown`.
std::vector<at::Tensor> inputs_by_name(const std::vector<Input>& expected,
                                       const std::map<std::string, at::Tensor>& given);

}  // namespace opwright::host

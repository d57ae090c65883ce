// NumPy's archive of several arrays: a zip file of .npy files.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace opwright::host {

// The arrays by their names. Throws Error with `input_unreadable`.
std::map<std::string, at::Tensor> read_npz(const std::string& path);

// Written whole or not at all. Throws Error with `output_unwritable`.
void write_npz(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& arrays);

}  // namespace opwright::host

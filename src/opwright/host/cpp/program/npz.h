// NumPy's archive of several arrays: a zip file of .npy files.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opwright::host {

// The arrays in the bytes of an archive, by their names. `what` says in messages where they come from. Throws Error
// with `input_unreadable`.
std::map<std::string, at::Tensor> read_npz(const std::string& what, std::string_view bytes);

// Written whole or not at all. Throws Error with `output_unwritable`, also for a name that is a path out of the
// archive.
void write_npz(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& arrays);

}  // namespace opwright::host

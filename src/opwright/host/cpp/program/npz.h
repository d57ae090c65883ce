// NumPy's archive format for several arrays: a zip file of .npy files.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opwright::host {

// Returns the arrays in the bytes of an archive, by name. `what` describes the archive in messages. Throws Error with
// `input_unreadable`.
std::map<std::string, at::Tensor> read_npz(const std::string& what, std::string_view bytes);

// Writes the archive completely or not at all. Throws Error with `output_unwritable`, also for a name that is a path
// outside the archive.
void write_npz(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& arrays);

}  // namespace opwright::host

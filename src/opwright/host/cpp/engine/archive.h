// Archives of torch.save and of torch.jit's pickles.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "opwright/host/error.h"

namespace opwright::host {

// Throws Error with `file_missing`, or with `code` if the file is not an archive. `what` describes the file in the
// message.
c10::IValue read_archive(const std::string& what, const std::string& path, Code code);

// Returns an archive that torch.load can read. Throws PyTorch's exception for values that it cannot save.
std::vector<char> archive_of(const c10::IValue& value);

}  // namespace opwright::host

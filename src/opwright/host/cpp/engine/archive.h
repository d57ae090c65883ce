// Archives of torch.save, and of torch.jit's own pickles.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>

#include "opwright/host/error.h"

namespace opwright::host {

// Throws Error: `file_missing`, or `code` where it is no such archive. `what` says in the message which file it is.
c10::IValue read_archive(const std::string& what, const std::string& path, Code code);

}  // namespace opwright::host

// Converts between dtypes and their Python names.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>

namespace opwright::host {

// Returns a name such as `float8_e5m2` for Float8_e5m2.
std::string dtype_name(at::ScalarType dtype);

// Returns Undefined if no dtype has this name.
at::ScalarType dtype_from_name(const std::string& name);

}  // namespace opwright::host

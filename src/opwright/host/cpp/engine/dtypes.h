// Dtypes by their names in Python.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>

namespace opwright::host {

// `float8_e5m2` for Float8_e5m2.
std::string dtype_name(at::ScalarType dtype);

// Undefined if there is no dtype of this name.
at::ScalarType dtype_from_name(const std::string& name);

}  // namespace opwright::host

// Sizes in messages: (1..4, 3, 8..).
#pragma once

#include <c10/util/ArrayRef.h>

#include <string>
#include <vector>

#include "opwright/host/shape.h"

namespace opwright::host {

std::string to_string(const Dimension& dim);
std::string to_string(const std::vector<Dimension>& dims);
std::string to_string(c10::IntArrayRef sizes);

}  // namespace opwright::host

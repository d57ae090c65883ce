// Formats the lines of JSON that the program prints.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>

#include "opwright/host/error.h"

namespace opwright::host {

// Without the newline, and in ASCII, because external text, such as an operator's message, may not be UTF-8 and may
// contain terminal commands.
std::string line_of(const nlohmann::ordered_json& json);

nlohmann::ordered_json as_json(const Error& error);

// The name, dtype and shape of an output.
nlohmann::ordered_json as_json(const std::string& name, const at::Tensor& output);

}  // namespace opwright::host

// The lines of JSON that the program prints.
#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>

#include "opwright/host/error.h"

namespace opwright::host {

// Without its newline, and in ASCII: text from elsewhere, an operator's message say, need not be UTF-8, and may be a
// command of the terminal.
std::string line_of(const nlohmann::ordered_json& json);

nlohmann::ordered_json as_json(const Error& error);

// The name, the dtype and the shape of an output.
nlohmann::ordered_json as_json(const std::string& name, const at::Tensor& output);

}  // namespace opwright::host

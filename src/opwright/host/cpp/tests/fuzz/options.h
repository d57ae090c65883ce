// Command lines as text, with one argument per line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "program/options.h"
#include "tests/fuzz/random.h"

namespace opwright::fuzz {

// Like the host's `parse_options`.
std::optional<host::Options> parsed_options(std::string_view lines);

std::string changed_options(std::string input, Random& random);

}  // namespace opwright::fuzz

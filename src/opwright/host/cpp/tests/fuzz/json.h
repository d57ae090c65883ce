// Mutates JSON, mostly keeping it valid, and so gets deeper into a reader than mutated bytes do.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

std::string changed_json(std::string text, std::span<const std::string_view> words, Random& random);

// The same for lines of JSON: mostly mutates one of them.
std::string changed_json_lines(std::string text, std::span<const std::string_view> words, Random& random);

}  // namespace opwright::fuzz

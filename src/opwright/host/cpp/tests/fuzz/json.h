// Changes of JSON that leave it JSON, most of the time, and so get deeper into a reader than bytes do.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

std::string changed_json(std::string text, std::span<const std::string_view> words, Random& random);

// The same for one of the lines of JSON, most of the time.
std::string changed_json_lines(std::string text, std::span<const std::string_view> words, Random& random);

}  // namespace opwright::fuzz

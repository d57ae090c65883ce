// Mutates text: its words, numbers and lines.
#pragma once

#include <span>
#include <string>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

// Numbers at the limits of what a reader may accept.
std::string edge_number(Random& random);

// The maximum nesting depth of brackets.
size_t nesting_of(std::string_view text);

// Makes one change. `words`: words with a meaning in the format, or deliberately without one.
std::string changed_text(std::string text, std::span<const std::string_view> words, Random& random);

}  // namespace opwright::fuzz

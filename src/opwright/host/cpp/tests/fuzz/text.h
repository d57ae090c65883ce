// Changes of text: of its words, numbers and lines.
#pragma once

#include <span>
#include <string>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

// Numbers at the edges of what a reader may take them for.
std::string edge_number(Random& random);

// How many brackets are open at a time, at most.
size_t nesting_of(std::string_view text);

// One change. `words`: what the format has a meaning for, or should have none.
std::string changed_text(std::string text, std::span<const std::string_view> words, Random& random);

}  // namespace opwright::fuzz

// Mutates .npy files.
#pragma once

#include <string>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

// Mostly keeps the size of the data consistent with the header.
std::string changed_npy(std::string input, Random& random);

}  // namespace opwright::fuzz

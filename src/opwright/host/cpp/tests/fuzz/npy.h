// Changes of .npy files.
#pragma once

#include <string>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

// The data has the size that the header says, most of the time.
std::string changed_npy(std::string input, Random& random);

}  // namespace opwright::fuzz

// Mutates archives that PyTorch reads.
#pragma once

#include <string>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

std::string changed_archive(std::string input, Random& random);

}  // namespace opwright::fuzz

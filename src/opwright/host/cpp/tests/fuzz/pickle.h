// Mutates pickles, keeping them sequences of operations.
#pragma once

#include <string>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

std::string changed_pickle(std::string pickle, Random& random);

}  // namespace opwright::fuzz

// Mutates PNG and JPEG files, keeping their chunks, lengths and checksums valid.
#pragma once

#include <string>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

std::string changed_image(std::string image, Random& random);

}  // namespace opwright::fuzz

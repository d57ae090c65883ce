// Changes of PNG and JPEG files that leave their pieces, lengths and checksums in order.
#pragma once

#include <string>

#include "tests/fuzz/random.h"

namespace opwright::fuzz {

std::string changed_image(std::string image, Random& random);

}  // namespace opwright::fuzz

// What a bundle says of the sizes of its inputs, and of pictures that become inputs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace opwright {

// How many elements a dimension may have; `max` is empty where there is no end.
struct Dimension {
    int64_t min = 0;
    std::optional<int64_t> max;
};

// How a picture becomes an input: docs/format.md says what is done.
struct ImageRecipe {
    int64_t resize = 0;
    int64_t crop_height = 0;
    int64_t crop_width = 0;
    std::array<double, 3> mean{};
    std::array<double, 3> std{};
};

}  // namespace opwright

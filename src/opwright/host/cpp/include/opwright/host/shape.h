// What a bundle specifies about the sizes of its inputs, and about pictures that become inputs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace opwright {

// The range of a dimension's size. `max` is empty if the size is unbounded.
struct Dimension {
    int64_t min = 0;
    std::optional<int64_t> max;
};

// How a picture is converted to an input. docs/reference/format.md describes the steps.
struct ImageRecipe {
    int64_t resize = 0;
    int64_t crop_height = 0;
    int64_t crop_width = 0;
    std::array<double, 3> mean{};
    std::array<double, 3> std{};
};

}  // namespace opwright

// The options of a warp. Without PyTorch.
#pragma once

#include <cstdint>

namespace geometry {

enum class Interpolation { nearest, bilinear, bicubic };
enum class Padding { constant, border, reflection };

struct Options {
    int64_t height, width;
    Interpolation interpolation;
    Padding padding;
    double fill;
};

// A batch of images: its sizes and strides.
struct Layout {
    int64_t count, channels, rows, columns;
    int64_t image_stride, channel_stride, row_stride, column_stride;
};

}  // namespace geometry

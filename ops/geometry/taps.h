// The pixels that a point is interpolated from, and their weights, on CPUs and GPUs. Without PyTorch.
#pragma once

#include <cmath>
#include <cstdint>

#include "options.h"
#include "points.h"

namespace geometry {

// The number of pixels on each axis.
constexpr int taps_of(Interpolation interpolation) {
    return interpolation == Interpolation::nearest ? 1 : interpolation == Interpolation::bilinear ? 2 : 4;
}

// The number of them before the pixel at or before the point.
constexpr int taps_before(int taps) {
    return taps == 4 ? 1 : 0;
}

// The weights of the taps for a fraction t in [0, 1).
template <int taps, class Number>
GEOMETRY_SHARED void find_weights(Number t, Number (&weights)[taps]) {
    if constexpr (taps == 1) {
        weights[0] = Number(1);
    } else if constexpr (taps == 2) {
        weights[0] = 1 - t;
        weights[1] = t;
    } else {
        // Keys, "Cubic convolution interpolation for digital image processing", 1981.
        const Number a = Number(-0.75);
        const Number s = 1 - t, far_left = t + 1, far_right = 2 - t;
        weights[0] = ((a * far_left - 5 * a) * far_left + 8 * a) * far_left - 4 * a;
        weights[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
        weights[2] = ((a + 2) * s - (a + 3)) * s * s + 1;
        weights[3] = ((a * far_right - 5 * a) * far_right + 8 * a) * far_right - 4 * a;
    }
}

// The derivatives of the weights by t.
template <int taps, class Number>
GEOMETRY_SHARED void find_slopes(Number t, Number (&slopes)[taps]) {
    if constexpr (taps == 1) {
        slopes[0] = Number(0);
    } else if constexpr (taps == 2) {
        slopes[0] = Number(-1);
        slopes[1] = Number(1);
    } else {
        const Number a = Number(-0.75);
        const Number s = 1 - t, far_left = t + 1, far_right = 2 - t;
        slopes[0] = (3 * a * far_left - 10 * a) * far_left + 8 * a;
        slopes[1] = (3 * (a + 2) * t - 2 * (a + 3)) * t;
        slopes[2] = -(3 * (a + 2) * s - 2 * (a + 3)) * s;
        slopes[3] = -((3 * a * far_right - 10 * a) * far_right + 8 * a);
    }
}

// The pixels on one axis, for a coordinate of at most max_coordinate.
template <int taps, class Number>
struct Axis {
    int64_t first;
    Number fraction;

    GEOMETRY_SHARED explicit Axis(double at) {
        const double whole = taps == 1 ? rint(at) : floor(at);
        first = static_cast<int64_t>(whole) - taps_before(taps);
        fraction = static_cast<Number>(at - whole);
    }
};

// A position mapped onto an axis of `size` pixels; -1 for the fill.
GEOMETRY_SHARED int64_t seen_at(int64_t position, int64_t size, Padding padding) {
    if (position >= 0 && position < size) return position;
    if (padding == Padding::constant) return -1;
    if (padding == Padding::border) return position < 0 ? 0 : size - 1;
    if (size == 1) return 0;
    const int64_t period = 2 * size - 2;
    const int64_t folded = (position % period + period) % period;
    return folded < size ? folded : period - folded;
}

}  // namespace geometry

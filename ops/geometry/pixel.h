// One output pixel, wherever its point is: used for all pixels on a GPU, and for those at the edges of the image on a
// CPU.
#pragma once

#include <cstdint>

#include "elements.h"
#include "options.h"
#include "points.h"
#include "taps.h"

namespace geometry {

// One image, and its padding.
template <class T>
struct Source {
    const T* image;
    Layout layout;
    Padding padding;
    Wide<T> fill;
};

// The derivative of an output pixel by its point, times its incoming gradient.
struct Slope {
    double x, y;
};

// The taps of a point: their rows and columns in the image, -1 for the fill, and their weights.
template <int taps, class T>
struct Neighbourhood {
    using Number = Wide<T>;
    int64_t rows[taps], columns[taps];
    Number row_weights[taps], column_weights[taps];
    Axis<taps, Number> x, y;

    GEOMETRY_SHARED Neighbourhood(const Source<T>& from, const Point& point) : x(point.x), y(point.y) {
        for (int tap = 0; tap < taps; ++tap) {
            rows[tap] = seen_at(y.first + tap, from.layout.rows, from.padding);
            columns[tap] = seen_at(x.first + tap, from.layout.columns, from.padding);
        }
        find_weights(y.fraction, row_weights);
        find_weights(x.fraction, column_weights);
    }

    // The pixel of a channel at a tap.
    GEOMETRY_SHARED Number seen(const Source<T>& from, int64_t channel, int row, int column) const {
        if (rows[row] < 0 || columns[column] < 0) return from.fill;
        const Layout& layout = from.layout;
        return widened(from.image[channel * layout.channel_stride + rows[row] * layout.row_stride +
                                  columns[column] * layout.column_stride]);
    }
};

// Writes all channels of one output pixel.
template <int taps, class T>
GEOMETRY_SHARED void interpolate_pixel(const Source<T>& from, const Point& point, T* into, int64_t channel_stride) {
    using Number = Wide<T>;
    if (!point.is_near) {
        for (int64_t channel = 0; channel < from.layout.channels; ++channel)
            into[channel * channel_stride] = narrowed<T>(from.fill);
        return;
    }
    const Neighbourhood<taps, T> near(from, point);
    for (int64_t channel = 0; channel < from.layout.channels; ++channel) {
        Number sum = 0;
        for (int row = 0; row < taps; ++row) {
            for (int column = 0; column < taps; ++column)
                sum += near.row_weights[row] * near.column_weights[column] * near.seen(from, channel, row, column);
        }
        into[channel * channel_stride] = narrowed<T>(sum);
    }
}

// Calls add(place, number) for each contribution of one output pixel to the gradient of the image, in its rows
// [first_row, last_row).
template <int taps, class T, class Add>
GEOMETRY_SHARED void spread_pixel(const Source<T>& of, int64_t first_row, int64_t last_row, const Point& point,
                                  const T* grad, int64_t grad_stride, const Add& add) {
    if (!point.is_near) return;
    const Neighbourhood<taps, T> near(of, point);
    const Layout& layout = of.layout;
    for (int row = 0; row < taps; ++row) {
        if (near.rows[row] < first_row || near.rows[row] >= last_row) continue;
        for (int column = 0; column < taps; ++column) {
            if (near.columns[column] < 0) continue;
            const Wide<T> weight = near.row_weights[row] * near.column_weights[column];
            const int64_t place = near.rows[row] * layout.row_stride + near.columns[column] * layout.column_stride;
            for (int64_t channel = 0; channel < layout.channels; ++channel)
                add(place + channel * layout.channel_stride, weight * widened(grad[channel * grad_stride]));
        }
    }
}

template <int taps, class T>
GEOMETRY_SHARED Slope slope_of_pixel(const Source<T>& of, const Point& point, const T* grad, int64_t grad_stride) {
    using Number = Wide<T>;
    if (!point.is_near) return {0, 0};
    const Neighbourhood<taps, T> near(of, point);
    Number x_slopes[taps], y_slopes[taps];
    find_slopes(near.x.fraction, x_slopes);
    find_slopes(near.y.fraction, y_slopes);
    Number x = 0, y = 0;
    for (int64_t channel = 0; channel < of.layout.channels; ++channel) {
        Number by_x = 0, by_y = 0;
        for (int row = 0; row < taps; ++row) {
            for (int column = 0; column < taps; ++column) {
                const Number seen = near.seen(of, channel, row, column);
                by_x += near.row_weights[row] * x_slopes[column] * seen;
                by_y += y_slopes[row] * near.column_weights[column] * seen;
            }
        }
        const Number incoming = widened(grad[channel * grad_stride]);
        x += incoming * by_x;
        y += incoming * by_y;
    }
    return {static_cast<double>(x), static_cast<double>(y)};
}

// The derivatives by the lines x, y and w at a point.
struct LineSlopes {
    double by[3];

    GEOMETRY_SHARED LineSlopes(const Slope& slope, const Point& point)
        : by{slope.x * point.one_over_w, slope.y * point.one_over_w,
             -(slope.x * point.x + slope.y * point.y) * point.one_over_w} {}
};

}  // namespace geometry

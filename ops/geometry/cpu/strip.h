// The points of adjacent pixels inside the image, computed with vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "../taps.h"
#include "spans.h"
#include "vectors.h"

namespace geometry {

// A strip's data stays in the L1 cache.
constexpr int strip_length = 128;

// The distance, in rows of the output, for which memory is prefetched.
constexpr int64_t rows_ahead = 16;

// For each pixel, its first tap and its fractions.
template <class Number>
struct Strip {
    Span span;
    int64_t count;
    int64_t origin;  // the first pixel's first tap, in elements from the start of the image
    int64_t ahead;   // from there to approximately the start of the next rows
    alignas(64) std::int32_t offsets[strip_length];  // relative to the first pixel's first tap
    alignas(64) Number x_fractions[strip_length];
    alignas(64) Number y_fractions[strip_length];

    // Whether the offsets of a span's taps fit. Its points are inside the image, and x and y are monotonic.
    bool covers(const Row& points, const Span& columns, const Layout& layout) {
        span = columns;
        count = span.end - span.begin;
        const Point first = points.at(span.begin), last = points.at(span.end - 1);
        const double across = std::abs(last.x - first.x) + 8, down = std::abs(last.y - first.y) + 8;
        return across * static_cast<double>(layout.column_stride) + down * static_cast<double>(layout.row_stride) <
               0x1p31;
    }

    // Finds the points of a span that is inside.
    template <int taps, int bytes>
    OPWRIGHT_INLINE void find(const Row& points, const Row& later, const Layout& layout) {
        using Doubles = simd::Vector<double, bytes>;
        const Point first = points.at(span.begin);
        const double x_origin = taps == 1 ? std::rint(first.x) : std::floor(first.x);
        const double y_origin = taps == 1 ? std::rint(first.y) : std::floor(first.y);
        origin = (static_cast<int64_t>(y_origin) - taps_before(taps)) * layout.row_stride +
                 (static_cast<int64_t>(x_origin) - taps_before(taps)) * layout.column_stride;
        ahead = distance(first, later.at(span.begin), layout);
        const Doubles row_stride(static_cast<double>(layout.row_stride));
        const Doubles column_stride(static_cast<double>(layout.column_stride));
        alignas(64) double wide_offsets[strip_length], wide_x[strip_length], wide_y[strip_length];
        Doubles u =
            Doubles(static_cast<double>(span.begin)) + Doubles::of_integers(simd::Integers<double, bytes>::count_up());
        for (int64_t at = 0; at < count; at += Doubles::lanes, u += Doubles(Doubles::lanes)) {
            const Doubles one_over_w = Doubles(1) / (Doubles(points.w.slope) * u + Doubles(points.w.start));
            const Doubles x = (Doubles(points.x.slope) * u + Doubles(points.x.start)) * one_over_w;
            const Doubles y = (Doubles(points.y.slope) * u + Doubles(points.y.start)) * one_over_w;
            const Doubles x_whole = taps == 1 ? round(x) : floor(x);
            const Doubles y_whole = taps == 1 ? round(y) : floor(y);
            const Doubles offset =
                (x_whole - Doubles(x_origin)) * column_stride + (y_whole - Doubles(y_origin)) * row_stride;
            offset.store(wide_offsets + at);
            (x - x_whole).store(wide_x + at);
            (y - y_whole).store(wide_y + at);
        }
        // Loads read whole vectors past the end of the strip, so the missing taps repeat the first one.
        const int64_t end = (count + 15) / 16 * 16;
        for (int64_t i = count; i < end; ++i) wide_offsets[i] = 0;
        for (int64_t i = 0; i < end; ++i) offsets[i] = static_cast<std::int32_t>(wide_offsets[i]);
        for (int64_t i = 0; i < end; ++i) x_fractions[i] = static_cast<Number>(wide_x[i]);
        for (int64_t i = 0; i < end; ++i) y_fractions[i] = static_cast<Number>(wide_y[i]);
    }

    // Prefetches the memory for the next rows of the output, which the processor does not predict: one cache line per
    // `pixels` pixels.
    template <class T>
    OPWRIGHT_INLINE void prefetch(const T* first, int64_t pixels) const {
        for (int64_t i = 0; i < count; i += pixels) __builtin_prefetch(first + offsets[i] + ahead);
    }

    // The same for the memory of the output some rows below.
    template <class T>
    OPWRIGHT_INLINE void prefetch_to_write(const T* first, const Layout& output, int64_t rows) const {
        constexpr int64_t line = 64 / sizeof(T);
        const T* below = first + rows * output.row_stride;
        const int64_t planes = output.column_stride == 1 ? output.channels : 1;
        for (int64_t plane = 0; plane < planes; ++plane) {
            for (int64_t i = 0; i < count * output.column_stride; i += line)
                __builtin_prefetch(below + plane * output.channel_stride + i, 1);
        }
    }

  private:
    static int64_t distance(const Point& from, const Point& to, const Layout& layout) {
        if (!to.is_near) return 0;
        return static_cast<int64_t>(to.x - from.x) * layout.column_stride +
               static_cast<int64_t>(to.y - from.y) * layout.row_stride;
    }
};

}  // namespace geometry

// The gradient of the homographies: the derivatives of the output by its points, and of the points by the matrix.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "../pixel.h"
#include "batch.h"
#include "planar.h"
#include "spans.h"
#include "strip.h"
#include "tiles.h"

namespace geometry {

// The derivatives by the nine entries of one homography, row by row.
using Matrix = std::array<double, 9>;

template <class T, int taps>
struct Slopes {
    using Number = Wide<T>;

    static constexpr int64_t rows_per_sum = 32;
    static_assert(rows_per_sum <= rows_per_block);

    Batch<T> batch;
    const T* grad;
    Layout grad_layout;
    Matrix* sums;

    // The number of sums per image, each over some rows of the output. It is small enough for one thread to add them,
    // in a fixed order.
    int64_t sums_per_image() const { return (grad_layout.rows + rows_per_sum - 1) / rows_per_sum; }

    // Sums of all images, numbered through the batch.
    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t number = i / sums_per_image(), first = i % sums_per_image() * rows_per_sum;
            const int64_t rows = std::min(rows_per_sum, grad_layout.rows - first);
            RowSum by_row[rows_per_sum];
            Span inside[rows_per_sum];
            for (int64_t row = 0; row < rows; ++row) inside[row] = outside_by_pixel(number, first + row, by_row[row]);
            in_tiles(inside, rows, [&](int64_t row, const Span& span) OPWRIGHT_INLINE {
                strip<bytes>(number, first + row, span, by_row[row]);
            });
            Matrix sum{};
            for (int64_t row = 0; row < rows; ++row) {
                for (int line = 0; line < 3; ++line) {
                    sum[3 * line] += by_row[row].times_column[line];
                    sum[3 * line + 1] += by_row[row].alone[line] * static_cast<double>(first + row);
                    sum[3 * line + 2] += by_row[row].alone[line];
                }
            }
            sums[i] = sum;
        }
    }

  private:
    // The derivatives by the lines x, y and w of a row: the sum over its pixels, and the sum weighted by each pixel's
    // column.
    struct RowSum {
        double alone[3] = {}, times_column[3] = {};

        void add(double column, const Slope& slope, const Point& point) {
            const LineSlopes slopes(slope, point);
            for (int line = 0; line < 3; ++line) {
                alone[line] += slopes.by[line];
                times_column[line] += slopes.by[line] * column;
            }
        }
    };

    // Adds the pixels of a row that vectors cannot compute, and returns the span of the others.
    [[gnu::noinline]] Span outside_by_pixel(int64_t number, int64_t v, RowSum& sum) const {
        const Row points(batch.homography(number), v);
        const RowSpans spans(points, grad_layout.columns);
        Span near{0, grad_layout.columns};
        if (batch.options.padding == Padding::constant) near = spans.around(some_tap_inside<taps>(batch.layout));
        Span inside = spans.inside(all_taps_inside<taps>(batch.layout));
        if (inside.begin >= inside.end) inside = {near.end, near.end};
        by_pixel(number, v, {near.begin, inside.begin}, sum);
        by_pixel(number, v, {inside.end, near.end}, sum);
        return inside;
    }

    const T* grad_row(int64_t number, int64_t v) const {
        return grad + number * grad_layout.image_stride + v * grad_layout.row_stride;
    }

    [[gnu::noinline]] void by_pixel(int64_t number, int64_t v, const Span& span, RowSum& sum) const {
        const Source<T> of = batch.source(batch.image(number));
        const Row points(batch.homography(number), v);
        for (int64_t column = span.begin; column < span.end; ++column) {
            const Point point = points.at(column);
            if (!point.is_near) continue;
            sum.add(static_cast<double>(column),
                    slope_of_pixel<taps>(of, point, grad_row(number, v) + column * grad_layout.column_stride,
                                         grad_layout.channel_stride),
                    point);
        }
    }

    template <int bytes>
    OPWRIGHT_INLINE void strip(int64_t number, int64_t v, const Span& span, RowSum& sum) const {
        using Doubles = simd::Vector<double, bytes>;
        const Layout& layout = batch.layout;
        const Row points(batch.homography(number), v);
        Strip<Number> strip;
        if (layout.column_stride != 1 || !strip.covers(points, span, layout)) return by_pixel(number, v, span, sum);
        strip.template find<taps, bytes>(points, Row(batch.homography(number), v + rows_ahead), layout);
        alignas(64) Number x_slopes[strip_length], y_slopes[strip_length];
        for (int64_t channel = 0; channel < layout.channels; ++channel)
            slopes_of_plane<bytes>(strip, batch.image(number) + channel * layout.channel_stride + strip.origin,
                                   grad_row(number, v) + channel * grad_layout.channel_stride + span.begin,
                                   channel == 0, x_slopes, y_slopes);
        alignas(64) double wide_x[strip_length], wide_y[strip_length];
        const int64_t end = (strip.count + 15) / 16 * 16;
        for (int64_t i = 0; i < end; ++i) wide_x[i] = i < strip.count ? static_cast<double>(x_slopes[i]) : 0;
        for (int64_t i = 0; i < end; ++i) wide_y[i] = i < strip.count ? static_cast<double>(y_slopes[i]) : 0;
        Doubles alone[3] = {0, 0, 0}, times_column[3] = {0, 0, 0};
        Doubles u =
            Doubles(static_cast<double>(span.begin)) + Doubles::of_integers(simd::Integers<double, bytes>::count_up());
        for (int64_t at = 0; at < strip.count; at += Doubles::lanes, u += Doubles(Doubles::lanes)) {
            const Doubles one_over_w = Doubles(1) / fma(Doubles(points.w.slope), u, Doubles(points.w.start));
            const Doubles x = fma(Doubles(points.x.slope), u, Doubles(points.x.start)) * one_over_w;
            const Doubles y = fma(Doubles(points.y.slope), u, Doubles(points.y.start)) * one_over_w;
            const Doubles slope_x = Doubles::load(wide_x + at), slope_y = Doubles::load(wide_y + at);
            const Doubles by[3] = {slope_x * one_over_w, slope_y * one_over_w,
                                   -fma(slope_x, x, slope_y * y) * one_over_w};
            for (int line = 0; line < 3; ++line) {
                alone[line] += by[line];
                times_column[line] = fma(by[line], u, times_column[line]);
            }
        }
        for (int line = 0; line < 3; ++line) {
            sum.alone[line] += sum_of_lanes(alone[line]);
            sum.times_column[line] += sum_of_lanes(times_column[line]);
        }
    }

    template <int bytes>
    OPWRIGHT_INLINE void slopes_of_plane(const Strip<Number>& strip, const T* origin, const T* incoming, bool is_first,
                                         Number* x_slopes, Number* y_slopes) const {
        using V = simd::Vector<Number, bytes>;
        strip.prefetch(origin, 64 / sizeof(T));
        const PlanarTaps<taps, T, bytes> seen(origin, batch.layout.row_stride, strip);
        for (int64_t at = 0; at < strip.count; at += V::lanes) {
            const V x_fraction = V::load(strip.x_fractions + at), y_fraction = V::load(strip.y_fractions + at);
            V x_weights[taps], y_weights[taps], along[taps], along_slope[taps], slopes[taps];
            find_weights(x_fraction, x_weights);
            find_slopes(x_fraction, slopes);
            for (int row = 0; row < taps; ++row) {
                V pixels[taps];
                seen.read(at, row, pixels);
                along[row] = weighted_sum(x_weights, pixels);
                along_slope[row] = weighted_sum(slopes, pixels);
            }
            find_weights(y_fraction, y_weights);
            find_slopes(y_fraction, slopes);
            const V grads = V::load(incoming + at, std::min<int64_t>(V::lanes, strip.count - at));
            const V x = grads * weighted_sum(y_weights, along_slope), y = grads * weighted_sum(slopes, along);
            (is_first ? x : V::load(x_slopes + at) + x).store(x_slopes + at);
            (is_first ? y : V::load(y_slopes + at) + y).store(y_slopes + at);
        }
    }
};

}  // namespace geometry

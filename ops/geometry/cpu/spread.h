// The gradient of the image: each output pixel adds to the pixels that it was interpolated from.
//
// The image is divided into bands of rows. One thread fills a band, from the output pixels that have taps in it. The
// bands depend only on the sizes, so the order of the sums does not depend on the number of threads, and no memory is
// needed besides the gradient itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "../pixel.h"
#include "batch.h"
#include "spans.h"
#include "strip.h"
#include "tiles.h"

namespace geometry {

template <class T, int taps>
struct Spread {
    using Number = Wide<T>;

    Batch<T> batch;
    const T* grad;
    Layout grad_layout;
    Number* gradient;  // in the layout of the images

    // Reflected points can come from anywhere, so bands would not save any work.
    int64_t bands() const {
        if (batch.options.padding == Padding::reflection) return 1;
        return std::clamp<int64_t>(batch.layout.rows / 256, 1, 16);
    }

    // Bands of all images, numbered through the batch.
    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t number = i / bands(), band = i % bands(), rows = batch.layout.rows;
            fill_band<bytes>(number, {rows * band / bands(), rows * (band + 1) / bands()});
        }
    }

  private:
    template <int bytes>
    OPWRIGHT_INLINE void fill_band(int64_t number, const Span& band) const {
        Number* into = gradient + number * batch.layout.image_stride;
        clear(into, band);
        const Rectangle inside = inside_of(band), near = around(band);
        Span all[rows_per_block];
        for (int64_t first = 0; first < grad_layout.rows; first += rows_per_block) {
            const int64_t count = std::min(rows_per_block, grad_layout.rows - first);
            for (int64_t i = 0; i < count; ++i) all[i] = partly_by_pixel(number, band, inside, near, first + i, into);
            in_tiles(all, count, [&](int64_t i, const Span& span) OPWRIGHT_INLINE {
                strip<bytes>(number, band, first + i, span, into);
            });
        }
    }

    // Adds the pixels of a row with only some of their taps in the band, and returns the span of those with all taps in
    // it.
    [[gnu::noinline]] Span partly_by_pixel(int64_t number, const Span& band, const Rectangle& inside,
                                           const Rectangle& near, int64_t v, Number* into) const {
        const Row points(batch.homography(number), v);
        const RowSpans spans(points, grad_layout.columns);
        const Span some = spans.around(near);
        if (some.begin >= some.end) return {};
        Span all = spans.inside(inside);
        if (all.begin >= all.end) all = {some.end, some.end};
        by_pixel(number, band, v, {some.begin, all.begin}, into);
        by_pixel(number, band, v, {all.end, some.end}, into);
        return all;
    }

    const T* grad_row(int64_t number, int64_t v) const {
        return grad + number * grad_layout.image_stride + v * grad_layout.row_stride;
    }

    void clear(Number* into, const Span& band) const {
        const Layout& layout = batch.layout;
        const bool is_planar = layout.column_stride == 1;
        const int64_t count = (band.end - band.begin) * layout.row_stride;
        for (int64_t channel = 0; channel < (is_planar ? layout.channels : 1); ++channel) {
            Number* first = into + channel * layout.channel_stride + band.begin * layout.row_stride;
            std::fill(first, first + count, Number(0));
        }
    }

    // The columns whose taps are all in the band.
    Rectangle inside_of(const Span& band) const {
        Rectangle rectangle = all_taps_inside<taps>(batch.layout);
        rectangle.top += static_cast<double>(band.begin);
        rectangle.bottom -= static_cast<double>(batch.layout.rows - band.end);
        return rectangle;
    }

    // Outside it, no tap is in the band.
    Rectangle around(const Span& band) const {
        constexpr double everywhere = std::numeric_limits<double>::infinity();
        Rectangle rectangle = some_tap_inside<taps>(batch.layout);
        rectangle.top += static_cast<double>(band.begin);
        rectangle.bottom -= static_cast<double>(batch.layout.rows - band.end);
        if (batch.options.padding == Padding::constant) return rectangle;
        // The first and the last row of the image also receive the taps beyond them.
        const bool is_first = band.begin == 0, is_last = band.end == batch.layout.rows;
        return {-everywhere, everywhere, is_first ? -everywhere : rectangle.top,
                is_last ? everywhere : rectangle.bottom};
    }

    [[gnu::noinline]] void by_pixel(int64_t number, const Span& band, int64_t v, const Span& span, Number* into) const {
        const Source<T> of = batch.source(batch.image(number));
        const Row points(batch.homography(number), v);
        for (int64_t column = span.begin; column < span.end; ++column) {
            spread_pixel<taps>(of, band.begin, band.end, points.at(column),
                               grad_row(number, v) + column * grad_layout.column_stride, grad_layout.channel_stride,
                               [&](int64_t place, Number added) { into[place] += added; });
        }
    }

    template <int bytes>
    OPWRIGHT_INLINE void strip(int64_t number, const Span& band, int64_t v, const Span& span, Number* into) const {
        const Layout& layout = batch.layout;
        const Row points(batch.homography(number), v), later(batch.homography(number), v + rows_ahead);
        Strip<Number> strip;
        if (!strip.covers(points, span, layout)) return by_pixel(number, band, v, span, into);
        strip.template find<taps, bytes>(points, later, layout);
        const T* from = grad_row(number, v) + span.begin * grad_layout.column_stride;
        Number* first = into + strip.origin;
        if (layout.column_stride == 1) {
            for (int64_t channel = 0; channel < layout.channels; ++channel)
                add_planar<bytes>(strip, from + channel * grad_layout.channel_stride,
                                  first + channel * layout.channel_stride);
        } else {
            add_interleaved(strip, from, first);
        }
    }

    template <int bytes>
    OPWRIGHT_INLINE void add_planar(const Strip<Number>& strip, const T* from, Number* first) const {
        using V = simd::Vector<Number, bytes>;
        strip.prefetch(first, 64 / sizeof(Number));
        alignas(64) Number products[taps][taps][strip_length];
        for (int64_t at = 0; at < strip.count; at += V::lanes) {
            V x_weights[taps], y_weights[taps];
            find_weights(V::load(strip.x_fractions + at), x_weights);
            find_weights(V::load(strip.y_fractions + at), y_weights);
            const V incoming = V::load(from + at, std::min<int64_t>(V::lanes, strip.count - at));
            for (int row = 0; row < taps; ++row) {
                for (int column = 0; column < taps; ++column)
                    (y_weights[row] * x_weights[column] * incoming).store(products[row][column] + at);
            }
        }
        // Not in sequence: an addition to a pixel would wait for the addition to its neighbour, because their loads and
        // stores overlap.
        constexpr int64_t apart = 8;
        for (int row = 0; row < taps; ++row) {
            Number* pixels = first + row * batch.layout.row_stride;
            for (int64_t start = 0; start < apart; ++start) {
                for (int64_t i = start; i < strip.count; i += apart)
                    add_row(products[row], i, pixels + strip.offsets[i]);
            }
        }
    }

    // All taps of a row at the same time.
    OPWRIGHT_INLINE static void add_row(const Number (&products)[taps][strip_length], int64_t at, Number* pixels) {
        typedef Number Numbers __attribute__((vector_size(taps * sizeof(Number))));
        Numbers sums, added;
        for (int column = 0; column < taps; ++column) added[column] = products[column][at];
        std::memcpy(&sums, pixels, sizeof(sums));
        sums += added;
        std::memcpy(pixels, &sums, sizeof(sums));
    }

    [[gnu::noinline]] void add_interleaved(const Strip<Number>& strip, const T* from, Number* first) const {
        const int64_t channels = batch.layout.channels;
        for (int64_t i = 0; i < strip.count; ++i) {
            Number x_weights[taps], y_weights[taps];
            find_weights(strip.x_fractions[i], x_weights);
            find_weights(strip.y_fractions[i], y_weights);
            for (int row = 0; row < taps; ++row) {
                for (int column = 0; column < taps; ++column) {
                    const Number weight = y_weights[row] * x_weights[column];
                    Number* pixel = first + strip.offsets[i] + row * batch.layout.row_stride + column * channels;
                    for (int64_t channel = 0; channel < channels; ++channel)
                        pixel[channel] += weight * widened(from[i * channels + channel]);
                }
            }
        }
    }
};

}  // namespace geometry

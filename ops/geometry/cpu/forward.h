// The output, block by block: vectors where all taps are inside the image, and pixel by pixel elsewhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "../pixel.h"
#include "batch.h"
#include "interleaved.h"
#include "packed.h"
#include "planar.h"
#include "spans.h"
#include "strip.h"
#include "tiles.h"

namespace geometry {

template <class T, int taps>
struct Forward {
    using Number = Wide<T>;

    Batch<T> batch;
    T* result;
    Layout result_layout;

    // Rows of all images, numbered through the batch.
    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
        OutputRow rows[rows_per_block];
        Span inside[rows_per_block];
        for (int64_t first = begin; first < end; first += rows_per_block) {
            const int64_t count = std::min(rows_per_block, end - first);
            for (int64_t i = 0; i < count; ++i) {
                rows[i] = row_at(first + i);
                inside[i] = rows[i].inside;
                outside_by_pixel(rows[i]);
            }
            in_tiles(inside, count, [&](int64_t i, const Span& span) OPWRIGHT_INLINE { strip<bytes>(rows[i], span); });
        }
    }

  private:
    struct OutputRow {
        Row points{}, later{};
        const T* image = nullptr;
        T* into = nullptr;
        Span inside;  // the columns that vectors can compute
    };

    OutputRow row_at(int64_t row) const {
        const int64_t number = row / result_layout.rows, v = row % result_layout.rows;
        const double* homography = batch.homography(number);
        const Row points(homography, v);
        return {points, Row(homography, v + rows_ahead), batch.image(number),
                result + number * result_layout.image_stride + v * result_layout.row_stride,
                RowSpans(points, result_layout.columns).inside(all_taps_inside<taps>(batch.layout))};
    }

    // Writes the pixels of a row that vectors cannot compute.
    [[gnu::noinline]] void outside_by_pixel(const OutputRow& row) const {
        const int64_t width = result_layout.columns;
        Span near{0, width};
        if (batch.options.padding == Padding::constant)
            near = RowSpans(row.points, width).around(some_tap_inside<taps>(batch.layout));
        const Span left{near.begin, row.inside.begin < row.inside.end ? row.inside.begin : near.end};
        const Span right{std::max(left.end, row.inside.end), near.end};
        fill(row, {0, left.begin});
        by_pixel(row, left);
        by_pixel(row, right);
        fill(row, {std::max(left.end, right.end), width});
    }

    void fill(const OutputRow& row, const Span& span) const {
        const T fill = narrowed<T>(as_element<T>(batch.options.fill));
        for (int64_t channel = 0; channel < batch.layout.channels; ++channel) {
            T* at = row.into + channel * result_layout.channel_stride;
            for (int64_t column = span.begin; column < span.end; ++column)
                at[column * result_layout.column_stride] = fill;
        }
    }

    [[gnu::noinline]] void by_pixel(const OutputRow& row, const Span& span) const {
        const Source<T> from = batch.source(row.image);
        for (int64_t column = span.begin; column < span.end; ++column) {
            interpolate_pixel<taps>(from, row.points.at(column), row.into + column * result_layout.column_stride,
                                    result_layout.channel_stride);
        }
    }

    template <int bytes>
    OPWRIGHT_INLINE void strip(const OutputRow& row, const Span& span) const {
        const Layout& layout = batch.layout;
        Strip<Number> strip;
        if (!strip.covers(row.points, span, layout)) return by_pixel(row, span);
        strip.template find<taps, bytes>(row.points, row.later, layout);
        const T* origin = row.image + strip.origin;
        T* into = row.into + span.begin * result_layout.column_stride;
        strip.prefetch_to_write(into, result_layout, rows_ahead);
        if (layout.column_stride == 1) {
            for (int64_t channel = 0; channel < layout.channels; ++channel)
                interpolate_planar<taps, T, bytes>(origin + channel * layout.channel_stride, layout.row_stride, strip,
                                                   into + channel * result_layout.channel_stride);
        } else if constexpr (!std::is_same_v<T, std::uint8_t>) {
            interpolate_interleaved<taps, T, bytes>(origin, layout, strip, into);
        } else if (taps == 2 && layout.channels == 3) {
            interpolate_packed<3, bytes>(origin, layout.row_stride, strip, into);
        } else if (taps == 2 && layout.channels == 4) {
            interpolate_packed<4, bytes>(origin, layout.row_stride, strip, into);
        } else {
            by_pixel(row, span);
        }
    }
};

}  // namespace geometry

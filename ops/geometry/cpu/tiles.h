// The order in which strips are processed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "spans.h"
#include "strip.h"

namespace geometry {

// Rows of the output that are processed together.
constexpr int64_t rows_per_block = 64;
constexpr int64_t tile_columns = 512;

// Calls act(row, span) for strips that cover the spans of up to rows_per_block rows, tile by tile. The rows of a tile
// are in the same part of the image, however it is rotated. Wide tiles are faster for an image that is not rotated.
template <class Act>
OPWRIGHT_INLINE inline void in_tiles(const Span* spans, int64_t rows, const Act& act) {
    int64_t left = INT64_MAX, right = 0;
    for (int64_t row = 0; row < rows; ++row) {
        if (spans[row].begin >= spans[row].end) continue;
        left = std::min(left, spans[row].begin);
        right = std::max(right, spans[row].end);
    }
    for (int64_t first = left / tile_columns * tile_columns; first < right; first += tile_columns) {
        for (int64_t row = 0; row < rows; ++row) {
            const int64_t end = std::min(first + tile_columns, spans[row].end);
            for (int64_t at = std::max(first, spans[row].begin); at < end; at += strip_length)
                act(row, Span{at, std::min(at + strip_length, end)});
        }
    }
}

}  // namespace geometry

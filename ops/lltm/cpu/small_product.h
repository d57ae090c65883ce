// A matrix product for small sizes: plain rows of numbers, without PyTorch.
//
// Matrix libraries copy the right matrix into their own layout in each call. In a recurrence it is the same in each
// step, and small enough to stay in a cache, so this product reads it without a copy.
#pragma once

#include <algorithm>
#include <cstdint>

#include "vectors.h"

namespace lltm {

// into = left right, or into += left right, over columns of `right`. All are row-major; strides are those of the rows.
template <class T>
struct SmallProduct {
    const T* left;
    const Wide<T>* right;
    T* into;
    std::int64_t left_stride;
    std::int64_t right_stride;
    std::int64_t into_stride;
    std::int64_t rows;
    std::int64_t depth;
    bool adds;

    template <int bytes>
    OPWRIGHT_INLINE void run(std::int64_t begin, std::int64_t end) const {
        using V = Vector<Wide<T>, bytes>;
        using Whole = std::integral_constant<std::int64_t, V::lanes>;
        constexpr std::int64_t wide = 3 * V::lanes;
        std::int64_t column = begin;
        // opwright: equivalent [<]: only the speed depends on it
        for (; column + wide <= end; column += wide) all_rows<V, 3>(column, Whole());
        // opwright: equivalent [<]: only the speed depends on it
        for (; column + V::lanes <= end; column += V::lanes) all_rows<V, 1>(column, Whole());
        if (column < end) all_rows<V, 1>(column, end - column);  // opwright: equivalent [<=]: no columns
    }

  private:
    template <class V, int vectors, class Count>
    OPWRIGHT_INLINE void all_rows(std::int64_t column, Count count) const {
        // The number of sums that fit into registers.
        // opwright: equivalent: only the speed depends on it
        constexpr int most = V::bytes == 64 ? 8 : 4;
        std::int64_t row = 0;
        for (; row + most <= rows; row += most) some_rows<V, vectors, most>(row, column, count);
        if (row + 4 <= rows) some_rows<V, vectors, 4>(row, column, count), row += 4;
        if (row + 2 <= rows) some_rows<V, vectors, 2>(row, column, count), row += 2;
        if (row < rows) some_rows<V, vectors, 1>(row, column, count);
    }

    template <class V, int vectors, int tile, class Count>
    OPWRIGHT_INLINE void some_rows(std::int64_t row, std::int64_t column, Count count) const {
        T* const corner = into + row * into_stride + column;
        V sums[tile][vectors];
#pragma GCC unroll 8
        for (int i = 0; i < tile; ++i)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; ++v)
                sums[i][v] = adds ? V::load(corner + i * into_stride + v * V::lanes, count) : V(0);
        const T* a = left + row * left_stride;
        const Wide<T>* b = right + column;
        for (std::int64_t k = 0; k < depth; ++k, ++a, b += right_stride) {
            V factors[vectors];
#pragma GCC unroll 3
            for (int v = 0; v < vectors; ++v) factors[v] = V::load(b + v * V::lanes, count);
#pragma GCC unroll 8
            for (int i = 0; i < tile; ++i) {
                const V one(static_cast<Wide<T>>(a[i * left_stride]));
#pragma GCC unroll 3
                for (int v = 0; v < vectors; ++v) sums[i][v] = fma(one, factors[v], sums[i][v]);
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < tile; ++i)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; ++v) sums[i][v].store(corner + i * into_stride + v * V::lanes, count);
    }
};

}  // namespace lltm

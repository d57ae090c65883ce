// A tile of a small matrix product, computed by one block.
//
// Small products have few tiles, so the time of one tile is the time of all. Each warp therefore adds up a part of the
// depth for all elements of the tile, and the block adds up the warps' sums.
#pragma once

#include <cstdint>

#include "numbers.cuh"

namespace lltm::gpu {

constexpr int tile_rows = 16;
constexpr int warps_per_tile = 8;
constexpr int threads_per_tile = 32 * warps_per_tile;

// Numbers that one instruction loads from shared memory, if they are suitably aligned.
template <class Number, int count>
struct alignas(count * sizeof(Number) < vector_bytes ? count * sizeof(Number) : vector_bytes) Group {
    Number at[count];
};

// Shared memory for a tile of `columns` columns.
template <class T, int columns>
struct TileMemory {
    // The operands are loaded in pieces of this depth: 36 KiB of any type.
    static constexpr int depth = sizeof(Wide<T>) == sizeof(double) ? 64 : 128;
    // The threads of a warp store 8 consecutive k of 4 rows: these strides spread them over different banks.
    static constexpr int left_stride = 20;
    static constexpr int right_stride = columns <= 20 ? 20 : 52;
    static constexpr int halves = warps_per_tile / 2;
    static constexpr int operands = depth * (left_stride + right_stride);
    static constexpr int sums = halves * tile_rows * columns;

    alignas(vector_bytes) Wide<T> numbers[operands > sums ? operands : sums];
};

// Computes the sums over k of left(row, k) right(column, k) for a tile, and stores that of a row and a column in
// memory.numbers[row * columns + column]. All threads of the block must call it, and can read the sums afterwards.
//
// Args:
//     depth: the number of values of k.
//     left: a function of a row of the tile and k, which returns 0 beyond the last row.
//     right: a function of a column of the tile and k, which returns 0 beyond the last column.
template <int columns, class T, class Left, class Right>
__device__ void multiply_tile(TileMemory<T, columns>& memory, int64_t depth, const Left& left, const Right& right) {
    using Memory = TileMemory<T, columns>;
    constexpr int rows_per_thread = columns % 8 == 0 ? 4 : 2;
    constexpr int threads_across = 32 * rows_per_thread / tile_rows;
    constexpr int columns_per_thread = columns / threads_across;
    constexpr int together = columns_per_thread % 2 == 0 ? 2 : 1;
    static_assert(columns_per_thread * threads_across == columns && columns <= Memory::right_stride);
    // A thread loads elements of one row and of some columns: 8 consecutive k of 4 rows per warp.
    constexpr int depth_step = threads_per_tile / tile_rows;
    constexpr int loads = Memory::depth / depth_step;
    constexpr int column_steps = (columns + tile_rows - 1) / tile_rows;

    const int thread = threadIdx.x;
    const int warp = thread / 32;
    const int first_row = thread % 32 / threads_across * rows_per_thread;
    const int first_column = thread % threads_across * columns_per_thread;
    Wide<T>* const lefts = memory.numbers;
    Wide<T>* const rights = memory.numbers + Memory::depth * Memory::left_stride;
    Wide<T> sums[rows_per_thread][columns_per_thread] = {};
    const int loaded_row = thread / 8 % tile_rows;
    const int loaded_k = thread / (8 * tile_rows) * 8 + thread % 8;
    Wide<T> next_left[loads], next_right[column_steps][loads];

    const auto load_piece = [&](int64_t first) {
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            const int64_t k = first + loaded_k + i * depth_step;
            next_left[i] = k < depth ? left(loaded_row, k) : Wide<T>(0);
#pragma unroll
            for (int j = 0; j < column_steps; ++j) {
                const int column = loaded_row + j * tile_rows;
                next_right[j][i] = column < columns && k < depth ? right(column, k) : Wide<T>(0);
            }
        }
    };

    load_piece(0);
    for (int64_t first = 0; first < depth; first += Memory::depth) {
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            const int k = loaded_k + i * depth_step;
            lefts[k * Memory::left_stride + loaded_row] = next_left[i];
#pragma unroll
            for (int j = 0; j < column_steps; ++j) {
                const int column = loaded_row + j * tile_rows;
                if (column < columns) rights[k * Memory::right_stride + column] = next_right[j][i];
            }
        }
        __syncthreads();
        // The next loads are in flight while this piece is multiplied.
        if (first + Memory::depth < depth) load_piece(first + Memory::depth);
        const int count = depth - first < Memory::depth ? static_cast<int>(depth - first) : Memory::depth;
#pragma unroll 4
        for (int k = warp; k < count; k += warps_per_tile) {
            using Rows = Group<Wide<T>, rows_per_thread>;
            using Columns = Group<Wide<T>, together>;
            const Rows x = *reinterpret_cast<const Rows*>(lefts + k * Memory::left_stride + first_row);
            Columns y[columns_per_thread / together];
#pragma unroll
            for (int j = 0; j < columns_per_thread / together; ++j) {
                y[j] =
                    *reinterpret_cast<const Columns*>(rights + k * Memory::right_stride + first_column + j * together);
            }
#pragma unroll
            for (int i = 0; i < rows_per_thread; ++i) {
#pragma unroll
                for (int j = 0; j < columns_per_thread; ++j) sums[i][j] += x.at[i] * y[j / together].at[j % together];
            }
        }
        __syncthreads();
    }

    // The upper half of the warps stores its sums, the lower half adds its own, and then all threads add those up.
    const auto each_sum = [&](const auto& act) {
        Wide<T>* const mine = memory.numbers + warp % Memory::halves * tile_rows * columns;
#pragma unroll
        for (int i = 0; i < rows_per_thread; ++i) {
#pragma unroll
            for (int j = 0; j < columns_per_thread; ++j)
                act(mine[(first_row + i) * columns + first_column + j], sums[i][j]);
        }
    };
    if (warp >= Memory::halves) each_sum([](Wide<T>& stored, Wide<T> sum) { stored = sum; });
    __syncthreads();
    if (warp < Memory::halves) each_sum([](Wide<T>& stored, Wide<T> sum) { stored += sum; });
    __syncthreads();
    for (int at = thread; at < tile_rows * columns; at += threads_per_tile) {
        Wide<T> sum = 0;
#pragma unroll
        for (int half = 0; half < Memory::halves; ++half) sum += memory.numbers[half * tile_rows * columns + at];
        memory.numbers[at] = sum;
    }
    __syncthreads();
}

}  // namespace lltm::gpu

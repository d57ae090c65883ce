// Several small matrix products as one kernel: launching PyTorch's would take longer than the products.
#pragma once

#include <cstdint>

#include "tile.cuh"

namespace lltm::gpu {

constexpr int product_columns = 16;
// The products of a step's gradients: of the weights and of [old_h, input], each in two parts.
constexpr int most_products = 4;

// into = left right
template <class T>
struct Product {
    Matrix<T> left;
    Matrix<T> right;
    MutableMatrix<T> into;
    int64_t depth;

    // The number of tiles per row and in total.
    __host__ __device__ int64_t across() const { return (into.size(1) + product_columns - 1) / product_columns; }
    __host__ __device__ int64_t tiles() const { return (into.size(0) + tile_rows - 1) / tile_rows * across(); }
};

template <class T>
struct Products {
    Product<T> all[most_products];
    int count;
};

// The grid covers the tiles of all products, one product after the other.
template <class T>
__global__ void __launch_bounds__(threads_per_tile) small_products(const Products<T> job) {
    __shared__ TileMemory<T, product_columns> memory;
    int64_t tile = blockIdx.x;
    int at = 0;
    for (; at < job.count - 1 && tile >= job.all[at].tiles(); ++at) tile -= job.all[at].tiles();
    const Product<T>& product = job.all[at];
    const int64_t first_row = tile / product.across() * tile_rows;
    const int64_t first_column = tile % product.across() * product_columns;
    const int64_t rows = product.into.size(0);
    const int64_t columns = product.into.size(1);
    multiply_tile<product_columns>(
        memory, product.depth,
        [&](int row, int64_t k) {
            return first_row + row < rows ? static_cast<Wide<T>>(product.left[first_row + row][k]) : Wide<T>(0);
        },
        [&](int column, int64_t k) {
            return first_column + column < columns ? static_cast<Wide<T>>(product.right[k][first_column + column])
                                                   : Wide<T>(0);
        });
    const int64_t row = first_row + threadIdx.x / product_columns;
    const int64_t column = first_column + threadIdx.x % product_columns;
    auto into = product.into;
    if (row < rows && column < columns) into[row][column] = static_cast<T>(memory.numbers[threadIdx.x]);
}

}  // namespace lltm::gpu

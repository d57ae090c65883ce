// A whole step for small sizes, including the matrix product, as one kernel, because launches dominate its time.
#pragma once

#include <cstdint>

#include "pointwise.cuh"
#include "tile.cuh"

namespace lltm::gpu {

// An estimate of the size from which PyTorch's product and a kernel after it are faster: the tiles fill the GPU more
// than once, or are deep. On an H100, 64 rows of 512 elements take 13 microseconds at a depth of 512; the two kernels
// took 16.
inline bool is_small(int64_t batch, int64_t state, int64_t depth) {
    return batch * state <= 1 << 16 && depth <= 1024;
}

template <class T>
struct SmallStep {
    Matrix<T> old_h;
    Matrix<T> input;     // without columns if its products are given
    Matrix<T> products;  // of the input, or all zeros
    Matrix<T> weights;
    Matrix<T> bias;  // one row
    Matrix<T> old_cell;
    T* new_h;           // not the memory of old_h, which other blocks read
    T* new_cell;        // may be the memory of old_cell
    T* new_cell_again;  // null, or memory for a second copy
    T* gates;           // null, or memory for them, which may be that of products
    int64_t batch;
    int64_t features;  // the columns of input
    int64_t state;
};

// A block computes tile_rows rows of `elements` elements, and their three gates.
template <class T, int elements>
__global__ void __launch_bounds__(threads_per_tile) small_step(const SmallStep<T> job) {
    static_assert(tile_rows * elements <= threads_per_tile);
    __shared__ TileMemory<T, 3 * elements> memory;
    const int64_t first_element = int64_t{blockIdx.x} * elements;
    const int64_t first_row = int64_t{blockIdx.y} * tile_rows;
    // The thread's own element. Its other operands are loaded before the sums, and used after them.
    const int row_in_tile = threadIdx.x / elements;
    const int element_in_tile = threadIdx.x % elements;
    const int64_t row = first_row + row_in_tile;
    const int64_t element = first_element + element_in_tile;
    const bool is_inside = row_in_tile < tile_rows && row < job.batch && element < job.state;
    Wide<T> sums[3] = {}, old_cell = 0;
    if (is_inside) {
        old_cell = static_cast<Wide<T>>(job.old_cell[row][element]);
#pragma unroll
        for (int gate = 0; gate < 3; ++gate) {
            const int64_t column = gate * job.state + element;
            sums[gate] = static_cast<Wide<T>>(job.bias[0][column]) + load<1>(job.products, row, column)[0];
        }
    }
    multiply_tile<3 * elements>(
        memory, job.state + job.features,
        [&](int row_here, int64_t k) {
            const int64_t at = first_row + row_here;
            if (at >= job.batch) return Wide<T>(0);
            return static_cast<Wide<T>>(k < job.state ? job.old_h[at][k] : job.input[at][k - job.state]);
        },
        [&](int column, int64_t k) {
            const int64_t at = first_element + column % elements;
            if (at >= job.state) return Wide<T>(0);
            return static_cast<Wide<T>>(job.weights[column / elements * job.state + at][k]);
        });
    if (!is_inside) return;
#pragma unroll
    for (int gate = 0; gate < 3; ++gate)
        sums[gate] += memory.numbers[(3 * row_in_tile + gate) * elements + element_in_tile];
    const Step<T> step(sums[0], sums[1], sums[2], old_cell);
    const int64_t here = row * job.state + element;
    job.new_h[here] = static_cast<T>(step.h);
    job.new_cell[here] = static_cast<T>(step.cell);
    if (job.new_cell_again != nullptr) job.new_cell_again[here] = static_cast<T>(step.cell);
    if (job.gates == nullptr) return;
    T* gates = job.gates + 3 * row * job.state + element;
    gates[0] = static_cast<T>(step.input);
    gates[job.state] = static_cast<T>(step.output);
    gates[2 * job.state] = static_cast<T>(step.candidate);
}

}  // namespace lltm::gpu

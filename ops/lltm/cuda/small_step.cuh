// A whole step for small sizes, including the matrix product, as one kernel: a small step's time is its launches.
#pragma once

#include "pointwise.cuh"

namespace lltm::gpu {

// The tile of a block: rows of the batch and elements of the state, a thread for each pair. It iterates over the depth
// in pieces, which all threads load together.
constexpr int tile_rows = 16;
constexpr int tile_elements = 8;
constexpr int tile_depth = 64;
constexpr int threads_per_tile = tile_rows * tile_elements;

// Above this, PyTorch's product and a kernel after it should be faster: each block reads the weights of its elements
// again, and no thread has more than three sums. An estimate, not yet measured on a GPU.
inline bool is_small(int64_t batch, int64_t state, int64_t depth) {
    return batch * state <= 1 << 14 && depth <= 512;
}

template <class T>
struct SmallStep {
    Matrix<T> old_h;
    Matrix<T> input;
    Matrix<T> weights;
    Matrix<T> bias;  // one row
    Matrix<T> old_cell;
    T* new_h;           // not the memory of old_h: other blocks read that
    T* new_cell;        // may be the memory of old_cell
    T* new_cell_again;  // null, or a second place for it
    T* gates;           // null, or a place for them
    int64_t batch;
    int64_t features;
    int64_t state;
};

template <class T>
__global__ void __launch_bounds__(threads_per_tile) small_step(const SmallStep<T> job) {
    // One more number in each row, so that threads that read a column do not have bank conflicts.
    __shared__ Wide<T> given[tile_rows][tile_depth + 1];
    __shared__ Wide<T> weights[3][tile_elements][tile_depth + 1];
    const int thread = threadIdx.x;
    const int element_in_tile = thread % tile_elements;
    const int row_in_tile = thread / tile_elements;
    const int64_t first_element = int64_t{blockIdx.x} * tile_elements;
    const int64_t first_row = int64_t{blockIdx.y} * tile_rows;
    const int64_t depth = job.state + job.features;
    Wide<T> sums[3] = {};
    for (int64_t first_depth = 0; first_depth < depth; first_depth += tile_depth) {
        // Zeros beyond the edges.
#pragma unroll
        for (int i = thread; i < tile_rows * tile_depth; i += threads_per_tile) {
            const int64_t row = first_row + i / tile_depth;
            const int64_t k = first_depth + i % tile_depth;
            Wide<T> number = 0;
            if (row < job.batch && k < depth)
                number = static_cast<Wide<T>>(k < job.state ? job.old_h[row][k] : job.input[row][k - job.state]);
            given[i / tile_depth][i % tile_depth] = number;
        }
#pragma unroll
        for (int gate = 0; gate < 3; ++gate) {
#pragma unroll
            for (int i = thread; i < tile_elements * tile_depth; i += threads_per_tile) {
                const int64_t element = first_element + i / tile_depth;
                const int64_t k = first_depth + i % tile_depth;
                Wide<T> number = 0;
                if (element < job.state && k < depth)
                    number = static_cast<Wide<T>>(job.weights[gate * job.state + element][k]);
                weights[gate][i / tile_depth][i % tile_depth] = number;
            }
        }
        __syncthreads();
#pragma unroll 16
        for (int k = 0; k < tile_depth; ++k) {
            const Wide<T> x = given[row_in_tile][k];
#pragma unroll
            for (int gate = 0; gate < 3; ++gate) sums[gate] += x * weights[gate][element_in_tile][k];
        }
        __syncthreads();
    }
    const int64_t row = first_row + row_in_tile;
    const int64_t element = first_element + element_in_tile;
    if (row >= job.batch || element >= job.state) return;
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) sums[gate] += static_cast<Wide<T>>(job.bias[0][gate * job.state + element]);
    const Step<T> step(sums[0], sums[1], sums[2], static_cast<Wide<T>>(job.old_cell[row][element]));
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

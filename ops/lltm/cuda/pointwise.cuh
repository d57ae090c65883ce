// The elementwise part of a step on the GPU, without the matrix products: row kernels with only PyTorch's accessors.
//
// A row of `gates` contains the input gate, the output gate and the candidate cell, each `state` wide. A row of
// `products` contains what they are computed from, in the same order, before the bias is added. Pointers are to
// row-major memory.
//
// A kernel moves `width` numbers with one instruction. If that is more than 1, all memory that it accesses must be
// aligned accordingly, and the state must be a multiple of it (`fits_vectors` in tensors.cuh). A width of 1 has no
// requirements.
#pragma once

#include "numbers.cuh"

namespace lltm::gpu {

// The threads of a block: one per column of the matrix, up to a warp, and rows for the rest.
constexpr int threads_per_block = 256;

// ---- Forward ----

// One step for one element.
template <class T>
struct Step {
    Wide<T> input, output, candidate, cell, h;

    __host__ __device__ Step(Wide<T> input_sum, Wide<T> output_sum, Wide<T> candidate_sum, Wide<T> old_cell)
        : input(Functions<T>::sigmoid(input_sum)),
          output(Functions<T>::sigmoid(output_sum)),
          candidate(Functions<T>::elu(candidate_sum)),
          cell(old_cell + candidate * input),
          h(Functions<T>::tanh(cell) * output) {}
};

// The arguments and the results of one step.
template <class T>
struct Forward {
    Matrix<T> products[2];  // the gates are computed from their sum
    Matrix<T> bias;         // one row
    Matrix<T> old_cell;
    T* new_h;
    T* new_cell;        // may be the memory of old_cell
    T* new_cell_again;  // null, or memory for a second copy
    T* gates;           // null, or memory for them, which may be that of products[0]
    int64_t rows;
    int64_t state;
};

template <class T, int width>
__global__ void __launch_bounds__(threads_per_block, 2) forward(const Forward<T> job) {
    const int64_t first_column = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * width;
    const int64_t first_row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
    for (int64_t column = first_column; column < job.state; column += int64_t{gridDim.x} * blockDim.x * width) {
        Pack<T, width> bias[3];
#pragma unroll
        for (int gate = 0; gate < 3; ++gate) bias[gate] = load<width>(job.bias, 0, gate * job.state + column);
        for (int64_t row = first_row; row < job.rows; row += int64_t{gridDim.y} * blockDim.y) {
            // All loads come before all stores, because a thread may store to memory that it loads from.
            Pack<T, width> products[2][3];
#pragma unroll
            for (int gate = 0; gate < 3; ++gate) {
                products[0][gate] = load<width>(job.products[0], row, gate * job.state + column);
                products[1][gate] = load<width>(job.products[1], row, gate * job.state + column);
            }
            const Pack<T, width> old_cell = load<width>(job.old_cell, row, column);
            Numbers<T, width> gates[3], cell, h;
#pragma unroll
            for (int i = 0; i < width; ++i) {
                Wide<T> sums[3];
#pragma unroll
                for (int gate = 0; gate < 3; ++gate)
                    sums[gate] = products[0][gate][i] + products[1][gate][i] + bias[gate][i];
                const Step<T> step(sums[0], sums[1], sums[2], old_cell[i]);
                gates[0].at[i] = step.input;
                gates[1].at[i] = step.output;
                gates[2].at[i] = step.candidate;
                cell.at[i] = step.cell;
                h.at[i] = step.h;
            }
            const int64_t here = row * job.state + column;
            store(job.new_h + here, h);
            store(job.new_cell + here, cell);
            if (job.new_cell_again != nullptr) store(job.new_cell_again + here, cell);
            if (job.gates == nullptr) continue;
#pragma unroll
            for (int gate = 0; gate < 3; ++gate) store(job.gates + (3 * row + gate) * job.state + column, gates[gate]);
        }
    }
}

// ---- Backward ----

// The backward of a step for one element: the gradients of its three products and of its old cell, from those of its
// results.
template <class T>
struct StepBack {
    Wide<T> input, output, candidate, old_cell;

    struct Given {
        Wide<T> of_new_h, of_new_cell, of_input, of_output, of_candidate;  // gradients
        Wide<T> input, output, candidate, new_cell;                        // the results of the step
    };

    __host__ __device__ explicit StepBack(const Given& given) {
        const Wide<T> squashed = Functions<T>::tanh(given.new_cell);
        old_cell = given.of_new_cell + given.of_new_h * given.output * (1 - squashed * squashed);
        input = (given.of_input + old_cell * given.candidate) * given.input * (1 - given.input);
        output = (given.of_output + given.of_new_h * squashed) * given.output * (1 - given.output);
        // For x <= 0 the candidate is exp(x) - 1, and its derivative is exp(x).
        const Wide<T> slope = given.candidate > 0 ? Wide<T>(1) : given.candidate + 1;
        candidate = (given.of_candidate + old_cell * given.input) * slope;
    }
};

// The gradients of the results are added to those from the next step.
template <class T>
struct Backward {
    Gradient<T> of_new_h;
    Gradient<T> of_new_cell;
    Gradient<T> of_gates;
    Matrix<T> more_of_new_h;
    Gradient<T> more_of_new_cell;
    Matrix<T> gates;
    Matrix<T> new_cell;
    T* to_products;
    T* to_old_cell;  // null, or memory for it, which may be that of more_of_new_cell's rows
    // The gradient of the bias is the sum of the rows of to_products. Each row of blocks sums its own rows and writes
    // the sum to its row of `partial_sums`, or adds it if `adds`; a single row of blocks writes it to `to_bias`. Both
    // are null if the gradient is not needed.
    Wide<T>* partial_sums;
    bool adds;
    T* to_bias;
    int64_t rows;
    int64_t state;
};

template <class T, int width>
__global__ void __launch_bounds__(threads_per_block, 2) backward(const Backward<T> job) {
    __shared__ Wide<T> sums[3][width][threads_per_block];
    const int here_in_block = threadIdx.y * blockDim.x + threadIdx.x;
    const int64_t first_row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
    const Wide<T> of_all_h = everywhere_of(job.of_new_h);
    const Wide<T> of_all_cells = everywhere_of(job.of_new_cell) + everywhere_of(job.more_of_new_cell);
    const Wide<T> of_all_gates = everywhere_of(job.of_gates);
    const bool wants_sums = job.partial_sums != nullptr || job.to_bias != nullptr;
    // All threads of a block run the same number of iterations of this loop, because they synchronize in it.
    for (int64_t tile = int64_t{blockIdx.x} * blockDim.x * width; tile < job.state;
         tile += int64_t{gridDim.x} * blockDim.x * width) {
        const int64_t column = tile + int64_t{threadIdx.x} * width;
        if (wants_sums) {
#pragma unroll
            for (int gate = 0; gate < 3; ++gate) {
#pragma unroll
                for (int i = 0; i < width; ++i) sums[gate][i][here_in_block] = 0;
            }
        }
        for (int64_t row = first_row; row < job.rows && column < job.state; row += int64_t{gridDim.y} * blockDim.y) {
            // All loads come before all stores, as above.
            Pack<T, width> gates[3], of_gates[3];
#pragma unroll
            for (int gate = 0; gate < 3; ++gate) {
                gates[gate] = load<width>(job.gates, row, gate * job.state + column);
                of_gates[gate] = load<width>(job.of_gates.rows, row, gate * job.state + column);
            }
            const auto new_cell = load<width>(job.new_cell, row, column);
            const auto of_new_h = load<width>(job.of_new_h.rows, row, column);
            const auto of_new_cell = load<width>(job.of_new_cell.rows, row, column);
            const auto more_of_new_h = load<width>(job.more_of_new_h, row, column);
            const auto more_of_new_cell = load<width>(job.more_of_new_cell.rows, row, column);
            Numbers<T, width> to_products[3], to_old_cell;
#pragma unroll
            for (int i = 0; i < width; ++i) {
                const StepBack<T> step({.of_new_h = of_new_h[i] + more_of_new_h[i] + of_all_h,
                                        .of_new_cell = of_new_cell[i] + more_of_new_cell[i] + of_all_cells,
                                        .of_input = of_gates[0][i] + of_all_gates,
                                        .of_output = of_gates[1][i] + of_all_gates,
                                        .of_candidate = of_gates[2][i] + of_all_gates,
                                        .input = gates[0][i],
                                        .output = gates[1][i],
                                        .candidate = gates[2][i],
                                        .new_cell = new_cell[i]});
                to_products[0].at[i] = step.input;
                to_products[1].at[i] = step.output;
                to_products[2].at[i] = step.candidate;
                to_old_cell.at[i] = step.old_cell;
            }
#pragma unroll
            for (int gate = 0; gate < 3; ++gate) {
                store(job.to_products + (3 * row + gate) * job.state + column, to_products[gate]);
            }
            if (wants_sums) {
#pragma unroll
                for (int gate = 0; gate < 3; ++gate) {
#pragma unroll
                    for (int i = 0; i < width; ++i) sums[gate][i][here_in_block] += to_products[gate].at[i];
                }
            }
            if (job.to_old_cell != nullptr) store(job.to_old_cell + row * job.state + column, to_old_cell);
        }
        if (!wants_sums) continue;
        __syncthreads();
        // All threads share the work: row y of them sums the numbers y, y + blockDim.y and so on.
        for (int number = threadIdx.y; number < 3 * width && column < job.state; number += blockDim.y) {
            const int gate = number / width;
            const int i = number % width;
            Wide<T> sum = 0;
            for (int y = 0; y < static_cast<int>(blockDim.y); ++y) sum += sums[gate][i][y * blockDim.x + threadIdx.x];
            const int64_t at = gate * job.state + column + i;
            if (job.to_bias != nullptr) {
                job.to_bias[at] = static_cast<T>(sum);
            } else {
                Wide<T>& partial = job.partial_sums[int64_t{blockIdx.y} * 3 * job.state + at];
                partial = job.adds ? partial + sum : sum;
            }
        }
        __syncthreads();
    }
}

// ---- The sum of a few rows ----

template <class T>
struct SumOfRows {
    const Wide<T>* rows;
    T* into;
    int64_t count;
    int64_t width;
};

constexpr int sum_columns = 32;

// Each block sums the columns of one warp. No two threads add to the same element, so the sum is deterministic.
template <class T>
__global__ void __launch_bounds__(threads_per_block) sum_of_rows(const SumOfRows<T> job) {
    constexpr int sum_rows = threads_per_block / sum_columns;
    __shared__ Wide<T> shared[sum_rows][sum_columns];
    for (int64_t tile = int64_t{blockIdx.x} * sum_columns; tile < job.width; tile += int64_t{gridDim.x} * sum_columns) {
        const int64_t column = tile + threadIdx.x;
        Wide<T> sum = 0;
        for (int64_t row = threadIdx.y; row < job.count && column < job.width; row += sum_rows)
            sum += job.rows[row * job.width + column];
        shared[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && column < job.width) {
            for (int y = 1; y < sum_rows; ++y) sum += shared[y][threadIdx.x];
            job.into[column] = static_cast<T>(sum);
        }
        __syncthreads();
    }
}

// ---- Two concatenated matrices ----

// [h, input] of each step, row by row: h is the state before the step, `first_h` or that after the previous step.
template <class T>
struct Joined {
    Matrix<T> first_h;
    Matrices<T> states;
    Matrices<T> input;
    T* into;
    int64_t steps;
    int64_t batch;
    int64_t features;
    int64_t state;
};

template <class T, int width>
__global__ void __launch_bounds__(threads_per_block) side_by_side(const Joined<T> job) {
    const int64_t all = job.state + job.features;
    for (int64_t step = blockIdx.z; step < job.steps; step += gridDim.z) {
        for (int64_t row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < job.batch;
             row += int64_t{gridDim.y} * blockDim.y) {
            for (int64_t column = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * width; column < all;
                 column += int64_t{gridDim.x} * blockDim.x * width) {
                const T* from = nullptr;
                if (column >= job.state) {
                    from = &job.input[step][row][column - job.state];
                } else if (step == 0) {
                    from = &job.first_h[row][column];
                } else {
                    from = &job.states[step - 1][row][column];
                }
                *reinterpret_cast<Pack<T, width>*>(job.into + (step * job.batch + row) * all + column) =
                    *reinterpret_cast<const Pack<T, width>*>(from);
            }
        }
    }
}

}  // namespace lltm::gpu

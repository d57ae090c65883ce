// Launches the kernels on tensors.
#pragma once

#include <opwright/empty.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>

#include "../tensors.h"
#include "pointwise.cuh"
#include "queue.cuh"
#include "small_products.cuh"
#include "small_step.cuh"
#include "tensors.cuh"

namespace lltm::gpu {

template <class T>
Tensor joined(const Queue& queue, const Sizes& sizes, const Tensor& first_h, const Tensor& states,
              const Tensor& input) {
    const auto& [steps, batch, features, state] = sizes;
    const int64_t depth = state + features;
    Tensor into = opwright::new_empty(input, {steps * batch, depth});
    if (steps * batch * depth == 0) return into;
    const Joined<T> job{.first_h = read<T>(first_h),
                        .states = read_all<T>(states),
                        .input = read_all<T>(input),
                        .into = memory_of<T>(into),
                        .steps = steps,
                        .batch = batch,
                        .features = features,
                        .state = state};
    constexpr int width = vector_bytes / sizeof(T);
    if (features % width == 0 && fits_vectors<T>(state, first_h, states, input)) {
        queue.launch(side_by_side<T, width>, over_rows(batch, depth / width, enough_blocks, steps), job);
    } else {
        queue.launch(side_by_side<T, 1>, over_rows(batch, depth, enough_blocks, steps), job);
    }
    return into;
}

template <class T>
void launch_forward(const Queue& queue, bool in_vectors, const Forward<T>& job) {
    if (job.rows * job.state == 0) return;  // CUDA cannot launch zero blocks
    constexpr int width = vector_bytes / sizeof(T);
    if (in_vectors) {
        queue.launch(forward<T, width>, over_rows(job.rows, job.state / width, enough_blocks), job);
    } else {
        queue.launch(forward<T, 1>, over_rows(job.rows, job.state, enough_blocks), job);
    }
}

template <class T>
void launch_small(const Queue& queue, const SmallStep<T>& job) {
    if (job.batch * job.state == 0) return;
    const auto launch = [&](auto kernel, int64_t elements) {
        const dim3 grid(static_cast<unsigned>(divided_up(job.state, elements)),
                        static_cast<unsigned>(divided_up(job.batch, tile_rows)));
        queue.launch(kernel, {grid, dim3(threads_per_tile)}, job);
    };
    // The larger tiles load each element less often, the smaller ones keep more multiprocessors busy. An estimate.
    constexpr int64_t few_tiles = 64;
    if (divided_up(job.state, 16) * divided_up(job.batch, tile_rows) >= few_tiles) {
        launch(small_step<T, 16>, 16);
    } else {
        launch(small_step<T, 4>, 4);
    }
}

// An estimate of the size from which PyTorch's products of a step's gradients are faster.
inline bool has_small_products(int64_t batch, int64_t features, int64_t state) {
    return is_small(batch, state, state + features) && 3 * state * (state + features) <= 1 << 18;
}

// Products that are computed together, in one launch.
template <class T>
class SmallProducts {
  public:
    // into = left right. `into` may be some columns of a gradient.
    void add(Matrix<T> left, Matrix<T> right, int64_t depth, const Tensor& into, int64_t first, int64_t count) {
        const int64_t sizes[2] = {into.size(0), count};
        if (sizes[0] * sizes[1] == 0) return;
        T* numbers = memory_of<T>(into) + first * into.stride(1);
        job_.all[job_.count++] = {left, right, {numbers, sizes, into.strides().data()}, depth};
        tiles_ += job_.all[job_.count - 1].tiles();
    }

    void launch(const Queue& queue) const {
        if (tiles_ == 0) return;
        queue.launch(small_products<T>, {dim3(static_cast<unsigned>(tiles_)), dim3(threads_per_tile)}, job_);
    }

  private:
    static Product<T> none() {
        const int64_t sizes[2] = {0, 0};
        return {zeros<T>(), zeros<T>(), {nullptr, sizes, sizes}, 0};
    }

    Products<T> job_{{none(), none(), none(), none()}, 0};
    int64_t tiles_ = 0;
};

// The backward kernel for steps of one size, and its partial sums of the bias.
template <class T>
class BackwardSteps {
  public:
    BackwardSteps(const Queue& queue, const Sizes& sizes, bool in_vectors, const Tensor& input, bool wants_bias)
        : queue_(queue), in_vectors_(in_vectors && sizes.state > 0), shape_(over_rows(0, 0, 1)) {
        const auto& [steps, batch, features, state] = sizes;
        const int64_t columns = in_vectors_ ? state / width : state;
        shape_ = over_rows(batch, columns, wants_bias ? enough_blocks_with_sums : enough_blocks);
        if (!wants_bias) return;
        to_bias_ = opwright::new_empty(input, {3 * state});
        // One row of blocks adds up a few rows, which saves the second kernel.
        if (batch <= few_rows * shape_.block.y) shape_.grid.y = 1;
        if (steps == 1 && shape_.grid.y == 1) return;
        const ScalarType wide = sizeof(Wide<T>) == sizeof(double) ? ScalarType::Double : ScalarType::Float;
        partial_sums_ = opwright::new_empty(input, {shape_.grid.y, 3 * state}, wide);
    }

    void launch(Backward<T> job) {
        if (job.state == 0 || (job.rows == 0 && !to_bias_.defined())) return;
        job.partial_sums = memory_of<Wide<T>>(partial_sums_);
        job.adds = launched_;
        if (!partial_sums_.defined()) job.to_bias = memory_of<T>(to_bias_);
        queue_.launch(in_vectors_ ? backward<T, width> : backward<T, 1>, shape_, job);
        launched_ = true;
    }

    Tensor to_bias() const {
        if (!partial_sums_.defined() || to_bias_.numel() == 0) return to_bias_;
        const int64_t count = partial_sums_.size(0);
        const int64_t columns = to_bias_.numel();
        const dim3 grid(static_cast<unsigned>(divided_up(columns, sum_columns)));
        queue_.launch(sum_of_rows<T>, {grid, dim3(sum_columns, threads_per_block / sum_columns)},
                      {numbers_of<Wide<T>>(partial_sums_), memory_of<T>(to_bias_), count, columns});
        return to_bias_;
    }

  private:
    static constexpr int width = vector_bytes / sizeof(T);
    static constexpr int64_t few_rows = 4;  // per thread

    const Queue& queue_;
    bool in_vectors_;
    Shape shape_;
    Tensor to_bias_;
    Tensor partial_sums_;
    bool launched_ = false;
};

// to_products weights, for some columns of the weights, with the strides of the argument whose gradient it is.
inline Tensor through_weights(const Tensor& to_products, const Tensor& weights, int64_t first, const Tensor& argument) {
    const int64_t width = argument.size(-1);
    Tensor gradient = opwright::empty_like(argument);
    const Tensor some = columns(weights, first, width);
    if (argument.dim() == 2) {
        multiply(gradient, to_products, some);
    } else if (gradient.is_contiguous()) {
        multiply(rows(gradient, 0, to_products.size(0), width), to_products, some);
    } else {
        const Tensor dense = opwright::new_empty(argument, argument.sizes());
        multiply(rows(dense, 0, to_products.size(0), width), to_products, some);
        torch::stable::copy_(gradient, dense);
    }
    return gradient;
}

}  // namespace lltm::gpu

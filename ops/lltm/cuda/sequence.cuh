// The steps of a sequence on the GPU, one after the other, and their gradients.
#pragma once

#include <opwright/empty.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "../tensors.h"
#include "../views.h"
#include "launches.cuh"
#include "queue.cuh"
#include "tensors.cuh"

namespace lltm::gpu {

// An input with at most this number of columns is multiplied in each step. An estimate.
constexpr int64_t few_features = 64;

template <class T>
std::tuple<Tensor, Tensor, Tensor, Tensor> all_steps(const Sizes& sizes, const Tensor& input, const Tensor& weights,
                                                     const Tensor& bias, const Tensor& old_h, const Tensor& old_cell,
                                                     bool keep) {
    const auto& [steps, batch, features, state] = sizes;
    const Queue queue(input);
    Tensor outputs = opwright::new_empty(input, {steps, batch, state});
    Tensor new_cell = opwright::new_empty(input, {batch, state});
    Tensor cells = keep ? opwright::new_empty(input, {steps, batch, state}) : Tensor();
    Tensor gates = keep ? opwright::new_empty(input, {steps, batch, 3 * state}) : Tensor();
    const int64_t width = 3 * state;
    // The input's part of the gates is computed for all steps at the same time, unless it is a small part of the work
    // of small steps.
    const bool is_apart = !is_small(batch, state, state + features) || (features > few_features && steps > 1);
    const bool small = is_small(batch, state, state + (is_apart ? 0 : features));
    const Tensor dense = is_apart ? ready_for_products(weights) : Tensor();
    Tensor of_input, of_state, recurrent;
    if (is_apart) {
        of_input = keep ? gates : opwright::new_empty(input, {steps, batch, width});
        multiply(rows(of_input, 0, sizes.rows(), width), rows(row_major(input), 0, sizes.rows(), features),
                 transposed(columns(dense, state, features)));
    }
    if (!small) {
        of_state = opwright::new_empty(input, {batch, width});
        recurrent = transposed(columns(dense, 0, state));
    }
    const bool in_vectors = fits_vectors<T>(state, bias, old_cell);
    const int64_t step_size = batch * state;
    T* last_cell = memory_of<T>(new_cell);
    for (int64_t at = 0; at < steps; ++at) {
        const bool is_last = at == steps - 1;
        T* into_h = memory_of<T>(outputs) + at * step_size;
        T* into_gates = keep ? memory_of<T>(gates) + at * 3 * step_size : nullptr;
        T* into_cell = keep ? memory_of<T>(cells) + at * step_size : last_cell;
        T* again = keep && is_last ? last_cell : nullptr;
        const Matrix<T> from_cell =
            at == 0 ? read<T>(old_cell) : read_row_major(keep ? into_cell - step_size : last_cell, batch, state);
        if (small) {
            launch_small<T>(queue,
                            {.old_h = at == 0 ? read<T>(old_h) : read_row_major(into_h - step_size, batch, state),
                             .input = read<T>(input, at),
                             .products = is_apart ? read<T>(of_input, at) : zeros<T>(),
                             .weights = read<T>(weights),
                             .bias = read_as_row<T>(bias),
                             .old_cell = from_cell,
                             .new_h = into_h,
                             .new_cell = into_cell,
                             .new_cell_again = again,
                             .gates = into_gates,
                             .batch = batch,
                             .features = is_apart ? 0 : features,
                             .state = state});
            continue;
        }
        multiply(of_state, at == 0 ? columns(old_h, 0, state) : rows(outputs, (at - 1) * batch, batch, state),
                 recurrent);
        launch_forward<T>(queue, in_vectors,
                          {.products = {read<T>(of_input, at), read<T>(of_state)},
                           .bias = read_as_row<T>(bias),
                           .old_cell = from_cell,
                           .new_h = into_h,
                           .new_cell = into_cell,
                           .new_cell_again = again,
                           .gates = into_gates,
                           .rows = batch,
                           .state = state});
    }
    return {outputs, new_cell, cells, gates};
}

inline std::tuple<Tensor, Tensor, Tensor, Tensor> checked_steps(const Tensor& input, const Tensor& weights,
                                                                const Tensor& bias, const Tensor& old_h,
                                                                const Tensor& old_cell, bool keep) {
    const Sizes sizes = checked_sizes(input, 3, DeviceType::CUDA, dtypes, weights, old_h);
    check_start(bias, old_cell, input, sizes);
    return with_type_of(input, [&](auto number) {
        return all_steps<decltype(number)>(sizes, input, weights, bias, old_h, old_cell, keep);
    });
}

inline std::tuple<Tensor, Tensor> sequence(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                           const Tensor& old_h, const Tensor& old_cell) {
    auto [outputs, new_cell, cells, gates] = checked_steps(input, weights, bias, old_h, old_cell, false);
    return {outputs, new_cell};
}

inline std::tuple<Tensor, Tensor, Tensor, Tensor> sequence_with_gates(const Tensor& input, const Tensor& weights,
                                                                      const Tensor& bias, const Tensor& old_h,
                                                                      const Tensor& old_cell) {
    return checked_steps(input, weights, bias, old_h, old_cell, true);
}

inline Gradients sequence_with_gates_backward(const std::optional<Tensor>& grad_0, const std::optional<Tensor>& grad_1,
                                              const std::optional<Tensor>& grad_2, const std::optional<Tensor>& grad_3,
                                              const Tensor& input, const Tensor& weights, const Tensor& old_h,
                                              const Tensor& result_0, const Tensor& result_2, const Tensor& result_3,
                                              const std::vector<bool>& wanted) {
    const Sizes sizes = checked_sizes(input, 3, DeviceType::CUDA, dtypes, weights, old_h);
    const auto& [steps, batch, features, state] = sizes;
    check_like(result_0, "result_0", input, {steps, batch, state});
    check_like(result_2, "result_2", input, {steps, batch, state});
    check_like(result_3, "result_3", input, {steps, batch, 3 * state});
    check_wanted(wanted);
    check_gradient(grad_0, "grad_0", input, {steps, batch, state});
    check_gradient(grad_1, "grad_1", input, {batch, state});
    check_gradient(grad_2, "grad_2", input, {steps, batch, state});
    check_gradient(grad_3, "grad_3", input, {steps, batch, 3 * state});
    return with_type_of(input, [&](auto number) -> Gradients {
        using T = decltype(number);
        const Queue queue(input);
        const Tensor to_products = opwright::new_empty(input, {steps * batch, 3 * state});
        // The gradients that flow from a step to the previous one.
        const Tensor to_h = opwright::new_empty(input, {batch, state});
        const Tensor to_cell = opwright::new_empty(input, {batch, state});
        const std::optional<Tensor> of_next_cell = to_cell;
        const Tensor dense = ready_for_products(weights);
        const Tensor recurrent = columns(dense, 0, state);
        // Deeper products take longer than PyTorch's: with 64 rows and a state of 512, an H100 took 3.6 ms instead
        // of 2.7.
        const bool small = is_small(batch, state, 3 * state);
        const bool in_vectors = fits_vectors<T>(state, grad_0, grad_1, grad_2, grad_3, result_2, result_3);
        BackwardSteps<T> back(queue, sizes, in_vectors, input, wanted[2]);
        for (int64_t at = steps - 1; at >= 0; --at) {
            const bool is_last = at == steps - 1;
            back.launch({.of_new_h = read<T>(grad_0, at),
                         .of_new_cell = read<T>(grad_2, at),
                         .of_gates = read<T>(grad_3, at),
                         .more_of_new_h = is_last ? zeros<T>() : read<T>(to_h),
                         .more_of_new_cell = read<T>(is_last ? grad_1 : of_next_cell),
                         .gates = read<T>(result_3, at),
                         .new_cell = read<T>(result_2, at),
                         .to_products = memory_of<T>(to_products) + at * batch * 3 * state,
                         .to_old_cell = memory_of<T>(to_cell),
                         .partial_sums = nullptr,
                         .adds = false,
                         .to_bias = nullptr,
                         .rows = batch,
                         .state = state});
            if (at == 0) continue;
            if (small) {
                SmallProducts<T> product;
                product.add(read_row_major(memory_of<T>(to_products) + at * batch * 3 * state, batch, 3 * state),
                            read<T>(recurrent), 3 * state, to_h, 0, state);
                product.launch(queue);
            } else {
                multiply(to_h, rows(to_products, at * batch, batch, 3 * state), recurrent);
            }
        }
        Tensor to_input, to_weights, to_old_h;
        if (wanted[0]) to_input = through_weights(to_products, dense, state, input);
        if (wanted[1]) {
            to_weights = opwright::empty_like(weights);
            multiply(to_weights, transposed(to_products), joined<T>(queue, sizes, old_h, result_0, input));
        }
        if (wanted[3]) to_old_h = through_weights(rows(to_products, 0, batch, 3 * state), dense, 0, old_h);
        return {to_input, to_weights, back.to_bias(), to_old_h, wanted[4] ? to_cell : Tensor()};
    });
}

}  // namespace lltm::gpu

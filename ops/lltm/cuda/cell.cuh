// One step on the GPU, and its gradients.
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

template <class T>
std::tuple<Tensor, Tensor, Tensor> step(const Sizes& sizes, const Tensor& input, const Tensor& weights,
                                        const Tensor& bias, const Tensor& old_h, const Tensor& old_cell,
                                        bool keep_gates) {
    const auto& [steps, batch, features, state] = sizes;
    const Queue queue(input);
    Tensor new_h = opwright::new_empty(input, {batch, state});
    Tensor new_cell = opwright::new_empty(input, {batch, state});
    Tensor gates = keep_gates ? opwright::new_empty(input, {batch, 3 * state}) : Tensor();
    if (is_small(batch, state, state + features)) {
        launch_small<T>(queue, {.old_h = read<T>(old_h),
                                .input = read<T>(input),
                                .products = zeros<T>(),
                                .weights = read<T>(weights),
                                .bias = read_as_row<T>(bias),
                                .old_cell = read<T>(old_cell),
                                .new_h = memory_of<T>(new_h),
                                .new_cell = memory_of<T>(new_cell),
                                .new_cell_again = nullptr,
                                .gates = memory_of<T>(gates),
                                .batch = batch,
                                .features = features,
                                .state = state});
        return {new_h, new_cell, gates};
    }
    const Tensor products = keep_gates ? gates : opwright::new_empty(input, {batch, 3 * state});
    multiply(products, joined<T>(queue, sizes, old_h, old_h, input), transposed(weights));
    launch_forward<T>(queue, fits_vectors<T>(state, bias, old_cell),
                      {.products = {read<T>(products), zeros<T>()},
                       .bias = read_as_row<T>(bias),
                       .old_cell = read<T>(old_cell),
                       .new_h = memory_of<T>(new_h),
                       .new_cell = memory_of<T>(new_cell),
                       .new_cell_again = nullptr,
                       .gates = memory_of<T>(gates),
                       .rows = batch,
                       .state = state});
    return {new_h, new_cell, gates};
}

inline std::tuple<Tensor, Tensor, Tensor> checked_step(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                                       const Tensor& old_h, const Tensor& old_cell, bool keep_gates) {
    const Sizes sizes = checked_sizes(input, 2, DeviceType::CUDA, dtypes, weights, old_h);
    check_start(bias, old_cell, input, sizes);
    return with_type_of(input, [&](auto number) {
        return step<decltype(number)>(sizes, input, weights, bias, old_h, old_cell, keep_gates);
    });
}

inline std::tuple<Tensor, Tensor> cell(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                       const Tensor& old_h, const Tensor& old_cell) {
    auto [new_h, new_cell, gates] = checked_step(input, weights, bias, old_h, old_cell, false);
    return {new_h, new_cell};
}

inline std::tuple<Tensor, Tensor, Tensor> cell_with_gates(const Tensor& input, const Tensor& weights,
                                                          const Tensor& bias, const Tensor& old_h,
                                                          const Tensor& old_cell) {
    return checked_step(input, weights, bias, old_h, old_cell, true);
}

inline Gradients cell_with_gates_backward(const std::optional<Tensor>& grad_0, const std::optional<Tensor>& grad_1,
                                          const std::optional<Tensor>& grad_2, const Tensor& input,
                                          const Tensor& weights, const Tensor& old_h, const Tensor& result_1,
                                          const Tensor& result_2, const std::vector<bool>& wanted) {
    const Sizes sizes = checked_sizes(input, 2, DeviceType::CUDA, dtypes, weights, old_h);
    const auto& [steps, batch, features, state] = sizes;
    check_like(result_1, "result_1", input, {batch, state});
    check_like(result_2, "result_2", input, {batch, 3 * state});
    check_wanted(wanted);
    check_gradient(grad_0, "grad_0", input, {batch, state});
    check_gradient(grad_1, "grad_1", input, {batch, state});
    check_gradient(grad_2, "grad_2", input, {batch, 3 * state});
    return with_type_of(input, [&](auto number) -> Gradients {
        using T = decltype(number);
        const Queue queue(input);
        const Tensor to_products = opwright::new_empty(input, {batch, 3 * state});
        const Tensor to_old_cell = wanted[4] ? opwright::new_empty(input, {batch, state}) : Tensor();
        const bool in_vectors = fits_vectors<T>(state, grad_0, grad_1, grad_2, result_1, result_2);
        BackwardSteps<T> back(queue, sizes, in_vectors, input, wanted[2]);
        back.launch({.of_new_h = read<T>(grad_0),
                     .of_new_cell = read<T>(grad_1),
                     .of_gates = read<T>(grad_2),
                     .more_of_new_h = zeros<T>(),
                     .more_of_new_cell = Gradient<T>{zeros<T>(), nullptr},
                     .gates = read<T>(result_2),
                     .new_cell = read<T>(result_1),
                     .to_products = memory_of<T>(to_products),
                     .to_old_cell = memory_of<T>(to_old_cell),
                     .partial_sums = nullptr,
                     .adds = false,
                     .to_bias = nullptr,
                     .rows = batch,
                     .state = state});
        Tensor to_input, to_weights, to_old_h;
        if (has_small_products(batch, features, state)) {
            SmallProducts<T> products;
            const auto through_weights = [&](int64_t first, const Tensor& argument) {
                Tensor gradient = opwright::empty_like(argument);
                products.add(read<T>(to_products), read_columns<T>(weights, first), 3 * state, gradient, 0,
                             argument.size(1));
                return gradient;
            };
            if (wanted[0]) to_input = through_weights(state, input);
            if (wanted[3]) to_old_h = through_weights(0, old_h);
            if (wanted[1]) {
                to_weights = opwright::empty_like(weights);
                const Matrix<T> of_products = read_transposed<T>(to_products);
                products.add(of_products, read<T>(old_h), batch, to_weights, 0, state);
                products.add(of_products, read<T>(input), batch, to_weights, state, features);
            }
            products.launch(queue);
            return {to_input, to_weights, back.to_bias(), to_old_h, to_old_cell};
        }
        if (wanted[0]) to_input = through_weights(to_products, weights, state, input);
        if (wanted[1]) {
            to_weights = opwright::empty_like(weights);
            multiply(to_weights, transposed(to_products), joined<T>(queue, sizes, old_h, old_h, input));
        }
        if (wanted[3]) to_old_h = through_weights(to_products, weights, 0, old_h);
        return {to_input, to_weights, back.to_bias(), to_old_h, to_old_cell};
    });
}

}  // namespace lltm::gpu

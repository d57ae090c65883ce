// The steps of a sequence on the CPU: one product for all steps computes everything independent of the previous step.
#include <opwright/empty.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "matrix.h"
#include "numbers.h"
#include "pointwise.h"
#include "recurrent_product.h"

namespace lltm {
namespace {

template <class T>
std::tuple<Tensor, Tensor, Tensor, Tensor> all_steps(const Sizes& sizes, const Tensor& input, const Tensor& weights,
                                                     const Tensor& bias, const Tensor& old_h, const Tensor& old_cell,
                                                     bool keep) {
    const auto& [steps, batch, features, state] = sizes;
    const Tensor biases = row_major(bias);
    const Tensor first_h = row_major(old_h);
    const Tensor first_cell = row_major(old_cell);
    // The input's part of the gates, for all steps at the same time.
    Tensor products = opwright::new_empty(input, {steps, batch, 3 * state});
    multiply(rows(products, 0, sizes.rows(), 3 * state), rows(row_major(input), 0, sizes.rows(), features),
             transposed(columns(weights, state, features)));
    Tensor outputs = opwright::new_empty(input, {steps, batch, state});
    Tensor new_cell = opwright::new_empty(input, {batch, state});
    Tensor cells = keep ? opwright::new_empty(input, {steps, batch, state}) : Tensor();
    const RecurrentProduct<T> recurrent(transposed(columns(weights, 0, state)), sizes);
    for (int64_t at = 0; at < steps; ++at) {
        const int64_t row = at * batch;
        recurrent.add(products, row, at == 0 ? first_h : outputs, std::max<int64_t>(row - batch, 0));
        const T* last_cell = at == 0 ? numbers_of<T>(first_cell)
                             : keep  ? numbers_of<T>(cells) + (row - batch) * state
                                     : numbers_of<T>(new_cell);
        T* sums = memory_of<T>(products) + row * 3 * state;
        in_parallel(Forward<T>{.products = sums,
                               .bias = numbers_of<T>(biases),
                               .old_cell = last_cell,
                               .new_h = memory_of<T>(outputs) + row * state,
                               .new_cell = keep ? memory_of<T>(cells) + row * state : memory_of<T>(new_cell),
                               .gates = keep ? sums : nullptr,
                               .state = state},
                    batch, state);
    }
    if (keep) {
        const T* last = numbers_of<T>(cells) + (sizes.rows() - batch) * state;
        std::copy(last, last + batch * state, memory_of<T>(new_cell));
    }
    return {outputs, new_cell, cells, products};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> checked_steps(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                                         const Tensor& old_h, const Tensor& old_cell, bool keep) {
    const Sizes sizes = checked_sizes(input, 3, DeviceType::CPU, cpu_dtypes, weights, old_h);
    check_start(bias, old_cell, input, sizes);
    return with_type_of(input, [&](auto number) {
        return all_steps<decltype(number)>(sizes, input, weights, bias, old_h, old_cell, keep);
    });
}

std::tuple<Tensor, Tensor> sequence(const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
                                    const Tensor& old_cell) {
    auto [outputs, new_cell, cells, gates] = checked_steps(input, weights, bias, old_h, old_cell, false);
    return {outputs, new_cell};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> sequence_with_gates(const Tensor& input, const Tensor& weights,
                                                               const Tensor& bias, const Tensor& old_h,
                                                               const Tensor& old_cell) {
    return checked_steps(input, weights, bias, old_h, old_cell, true);
}

Gradients sequence_with_gates_backward(const std::optional<Tensor>& grad_0, const std::optional<Tensor>& grad_1,
                                       const std::optional<Tensor>& grad_2, const std::optional<Tensor>& grad_3,
                                       const Tensor& input, const Tensor& weights, const Tensor& old_h,
                                       const Tensor& result_0, const Tensor& result_2, const Tensor& result_3,
                                       const std::vector<bool>& wanted) {
    const Sizes sizes = checked_sizes(input, 3, DeviceType::CPU, cpu_dtypes, weights, old_h);
    // Not a structured binding: clang 15 and older do not capture its names in a lambda.
    const int64_t steps = sizes.steps, batch = sizes.batch, features = sizes.features, state = sizes.state;
    check_like(result_0, "result_0", input, {steps, batch, state});
    check_like(result_2, "result_2", input, {steps, batch, state});
    check_like(result_3, "result_3", input, {steps, batch, 3 * state});
    check_wanted(wanted);
    return with_type_of(input, [&](auto number) -> Gradients {
        using T = decltype(number);
        const IncomingRows<T> of_outputs(grad_0, "grad_0", input, {steps, batch, state});
        const IncomingRows<T> of_new_cell(grad_1, "grad_1", input, {batch, state});
        const IncomingRows<T> of_cells(grad_2, "grad_2", input, {steps, batch, state});
        const IncomingRows<T> of_gates(grad_3, "grad_3", input, {steps, batch, 3 * state});
        const Tensor outputs = row_major(result_0);
        const Tensor cells = row_major(result_2);
        const Tensor gates = row_major(result_3);
        // opwright: equivalent [4]: more memory than needed
        Tensor to_products = opwright::new_empty(input, {steps, batch, 3 * state});
        // The gradients that flow from a step to the previous one.
        Tensor to_h = opwright::new_empty(input, {batch, state});
        Tensor to_cell = opwright::new_empty(input, {batch, state});
        const Rows<T> carried_h{numbers_of<T>(to_h), state, false};
        const Rows<T> carried_cell{numbers_of<T>(to_cell), state, false};
        const Tensor recurrent = columns(weights, 0, state);
        const RecurrentProduct<T> through_weights(recurrent, sizes);
        for (int64_t at = steps - 1; at >= 0; --at) {
            const bool is_last = at == steps - 1;
            const int64_t row = at * batch;
            in_parallel(Backward<T>{{of_outputs.from(row), is_last ? Rows<T>() : carried_h},
                                    {of_cells.from(row), is_last ? of_new_cell.from(0) : carried_cell},
                                    of_gates.from(row),
                                    numbers_of<T>(gates) + row * 3 * state,
                                    numbers_of<T>(cells) + row * state,
                                    memory_of<T>(to_products) + row * 3 * state,
                                    memory_of<T>(to_cell),
                                    state},
                        batch, state);
            // opwright: equivalent [>=]: nothing uses the product of the first step
            if (at > 0) through_weights.write(to_h, 0, to_products, row);
        }
        const Tensor all = rows(to_products, 0, sizes.rows(), 3 * state);
        const Tensor first = rows(to_products, 0, batch, 3 * state);
        Tensor to_input, to_weights, to_bias, to_old_h;
        if (wanted[0]) {
            to_input = opwright::empty_like(input);
            if (to_input.is_contiguous()) {
                multiply(rows(to_input, 0, sizes.rows(), features), all, columns(weights, state, features));
            } else {
                Tensor dense = opwright::new_empty(input, {steps, batch, features});
                multiply(rows(dense, 0, sizes.rows(), features), all, columns(weights, state, features));
                torch::stable::copy_(to_input, dense);
            }
        }
        if (wanted[1]) {
            to_weights = opwright::empty_like(weights);
            multiply(columns(to_weights, state, features), transposed(all),
                     rows(row_major(input), 0, sizes.rows(), features));
            const Tensor of_old_h = columns(to_weights, 0, state);
            multiply(of_old_h, transposed(first), old_h);
            add_product(of_old_h, transposed(rows(to_products, batch, sizes.rows() - batch, 3 * state)),
                        rows(outputs, 0, sizes.rows() - batch, state));
        }
        if (wanted[2]) to_bias = sum_of_rows<T>(to_products, sizes.rows(), 3 * state);
        if (wanted[3]) {
            to_old_h = opwright::empty_like(old_h);
            multiply(to_old_h, first, recurrent);
        }
        return {to_input, to_weights, to_bias, to_old_h, wanted[4] ? to_cell : Tensor()};
    });
}

}  // namespace
}  // namespace lltm

OPWRIGHT_IMPL(lltm, CPU, m) {
    m.impl("sequence", OPWRIGHT_FN(lltm::sequence));
    m.impl("sequence_with_gates", OPWRIGHT_FN(lltm::sequence_with_gates));
    m.impl("sequence_with_gates_backward", OPWRIGHT_FN(lltm::sequence_with_gates_backward));
}

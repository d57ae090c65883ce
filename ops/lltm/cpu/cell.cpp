// One step on the CPU: PyTorch computes the matrix product, or this file for small sizes, and the rest in one pass.
#include <opwright/empty.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "bfloat16_product.h"
#include "lanes.h"
#include "matrix.h"
#include "numbers.h"
#include "pointwise.h"
#include "small_step.h"

namespace lltm {
namespace {

// [left right], row by row.
Tensor side_by_side(const Tensor& left, const Tensor& right) {
    const Tensor parts[2] = {row_major(left), row_major(right)};
    const int64_t count = left.size(0);
    Tensor joined = opwright::new_empty(left, {count, left.size(1) + right.size(1)});
    const std::size_t bytes[2] = {static_cast<std::size_t>(left.size(1) * left.element_size()),
                                  static_cast<std::size_t>(right.size(1) * right.element_size())};
    const auto* from_left = static_cast<const char*>(parts[0].const_data_ptr());
    const auto* from_right = static_cast<const char*>(parts[1].const_data_ptr());
    auto* into = static_cast<char*>(joined.mutable_data_ptr());
    // Copying eight bytes takes less time than an element of a gate: hence the division.
    const int64_t rows = items_per_thread((bytes[0] + bytes[1]) / 8);  // opwright: equivalent: only the speed
    torch::stable::parallel_for(0, count, rows, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            char* at = into + row * (bytes[0] + bytes[1]);
            std::memcpy(at, from_left + row * bytes[0], bytes[0]);
            std::memcpy(at + bytes[0], from_right + row * bytes[1], bytes[1]);
        }
    });
    return joined;
}

// ---- Small steps ----

// Whether SmallStep is faster, as measured (docs/explanation/lltm.md): the batch fills more than half of a vector, and
// at most two; a second one pays off if threads share the work.
template <class T>
bool is_small(int64_t batch, int64_t state) {
    const int64_t lanes = lanes_of(simd::instruction_set(), sizeof(T));
    const int64_t vectors = torch::stable::get_num_threads() > 1 ? 2 : 1;  // opwright: equivalent: only the speed
    const bool pays_off = 2 * batch > lanes && batch <= vectors * lanes;   // opwright: equivalent: only the speed
    // opwright: equivalent [*]: only the speed depends on it
    return state % SmallStep<T>::tile == 0 && pays_off;
}

// Whether PairedProduct is faster, as measured (docs/explanation/lltm.md): the batch fills at most three vectors, and
// more than half of the last one if the weights are large. A pair must not be split between old_h and input.
bool is_small_in_bfloat16(const Sizes& sizes, const Tensor& weights) {
    constexpr int64_t lanes = 16;
    // opwright: equivalent [*]: only the speed and rounding depend on it
    const bool pays_off = (sizes.batch - 1) % lanes >= lanes / 2 || weights.numel() <= 1 << 19;
    // opwright: equivalent [<=]: the same
    return multiplies_bfloat16() && sizes.batch <= 3 * lanes && pays_off && sizes.features % 2 == 0 &&
           sizes.state % lanes == 0;
}

// The products of each row of [old_h input] with the rows of the weights, (batch, 3 state), with sums of type `Sum`. As
// in SmallStep, the lanes of a vector are the batch.
template <class Sum>
std::unique_ptr<Sum[]> small_products(const Sizes& sizes, const Tensor& input, const Tensor& weights,
                                      const Tensor& old_h) {
    const int64_t depth = sizes.state + sizes.features;
    const int64_t width = 3 * sizes.state;
    const Tensor dense = row_major(weights);
    const Lanes<Sum> given({old_h, input});
    const int64_t lanes = given.stride();
    const std::unique_ptr<Sum[]> sums(new Sum[width * lanes]);
    // opwright: equivalent: only the speed depends on it
    const int64_t rows = items_per_thread(work_of_products(lanes * depth / 2));
    torch::stable::parallel_for(0, width, rows, [&](int64_t begin, int64_t end) {
        const PairedProduct<Sum> job{.left = numbers_of<BFloat16>(dense) + begin * depth,
                                     .right = given.numbers(),
                                     .into = sums.get() + begin * lanes,
                                     .left_stride = depth,
                                     .right_stride = lanes,
                                     .into_stride = lanes,
                                     .rows = end - begin,
                                     .pairs = depth / 2,
                                     .adds = false};
        job.run(0, lanes);
    });
    std::unique_ptr<Sum[]> products(new Sum[sizes.batch * width]);
    run(Turn<Sum>{sums.get(), products.get(), lanes, width, width}, 0, sizes.batch);
    return products;
}

// ---- One step ----

template <class T>
std::tuple<Tensor, Tensor, Tensor> step(const Sizes& sizes, const Tensor& input, const Tensor& weights,
                                        const Tensor& bias, const Tensor& old_h, const Tensor& old_cell,
                                        bool keep_gates) {
    // Not a structured binding: clang 15 and older do not capture its names in a lambda.
    const int64_t batch = sizes.batch, features = sizes.features, state = sizes.state;
    const Tensor biases = row_major(bias);
    const Tensor cells = row_major(old_cell);
    Tensor new_h = opwright::new_empty(input, {batch, state});
    Tensor new_cell = opwright::new_empty(input, {batch, state});
    if constexpr (!std::is_same_v<T, BFloat16>) {
        // opwright: equivalent [;]: only the speed depends on it
        if (is_small<T>(batch, state)) {
            const Tensor dense = row_major(weights);
            Tensor gates = keep_gates ? opwright::new_empty(input, {batch, 3 * state}) : Tensor();
            const Lanes<T> given({old_h, input});
            const SmallStep<T> job{.weights = numbers_of<T>(dense),
                                   .given = given.numbers(),
                                   .bias = numbers_of<T>(biases),
                                   .old_cell = numbers_of<T>(cells),
                                   .new_h = memory_of<T>(new_h),
                                   .new_cell = memory_of<T>(new_cell),
                                   .gates = keep_gates ? memory_of<T>(gates) : nullptr,
                                   .given_stride = given.stride(),
                                   .depth = state + features,
                                   .batch = batch,
                                   .state = state};
            // opwright: equivalent: only the speed depends on it
            const int64_t each = batch + work_of_products(3 * batch * job.depth);
            in_parallel_blocks(job, state, job.tile, each);
            return {new_h, new_cell, gates};
        }
    }
    const auto finish = [&](const auto* products, T* gates) {
        using Product = std::remove_const_t<std::remove_pointer_t<decltype(products)>>;
        in_parallel(Forward<T, Product>{products, numbers_of<T>(biases), numbers_of<T>(cells), memory_of<T>(new_h),
                                        memory_of<T>(new_cell), gates, state},
                    batch, state);
    };
    if constexpr (std::is_same_v<T, BFloat16> && has_paired_product) {
        // opwright: equivalent [;]: only the speed and rounding depend on it
        if (is_small_in_bfloat16(sizes, weights)) {
            Tensor gates = keep_gates ? opwright::new_empty(input, {batch, 3 * state}) : Tensor();
            const auto products = small_products<Wide<T>>(sizes, input, weights, old_h);
            finish(products.get(), keep_gates ? memory_of<T>(gates) : nullptr);
            return {new_h, new_cell, gates};
        }
    }
    Tensor products = opwright::new_empty(input, {batch, 3 * state});
    multiply(products, side_by_side(old_h, input), transposed(weights));
    T* sums = memory_of<T>(products);
    finish(sums, keep_gates ? sums : nullptr);
    return {new_h, new_cell, products};
}

std::tuple<Tensor, Tensor, Tensor> checked_step(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                                const Tensor& old_h, const Tensor& old_cell, bool keep_gates) {
    const Sizes sizes = checked_sizes(input, 2, DeviceType::CPU, cpu_dtypes, weights, old_h);
    check_start(bias, old_cell, input, sizes);
    return with_type_of(input, [&](auto number) {
        return step<decltype(number)>(sizes, input, weights, bias, old_h, old_cell, keep_gates);
    });
}

std::tuple<Tensor, Tensor> cell(const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
                                const Tensor& old_cell) {
    auto [new_h, new_cell, gates] = checked_step(input, weights, bias, old_h, old_cell, false);
    return {new_h, new_cell};
}

std::tuple<Tensor, Tensor, Tensor> cell_with_gates(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                                   const Tensor& old_h, const Tensor& old_cell) {
    return checked_step(input, weights, bias, old_h, old_cell, true);
}

Gradients cell_with_gates_backward(const std::optional<Tensor>& grad_0, const std::optional<Tensor>& grad_1,
                                   const std::optional<Tensor>& grad_2, const Tensor& input, const Tensor& weights,
                                   const Tensor& old_h, const Tensor& result_1, const Tensor& result_2,
                                   const std::vector<bool>& wanted) {
    const Sizes sizes = checked_sizes(input, 2, DeviceType::CPU, cpu_dtypes, weights, old_h);
    // Not a structured binding: clang 15 and older do not capture its names in a lambda.
    const int64_t batch = sizes.batch, features = sizes.features, state = sizes.state;
    check_like(result_1, "result_1", input, {batch, state});
    check_like(result_2, "result_2", input, {batch, 3 * state});
    check_wanted(wanted);
    return with_type_of(input, [&](auto number) -> Gradients {
        using T = decltype(number);
        const IncomingRows<T> of_new_h(grad_0, "grad_0", input, {batch, state});
        const IncomingRows<T> of_new_cell(grad_1, "grad_1", input, {batch, state});
        const IncomingRows<T> of_gates(grad_2, "grad_2", input, {batch, 3 * state});
        const Tensor new_cell = row_major(result_1);
        const Tensor gates = row_major(result_2);
        Tensor to_products = opwright::new_empty(input, {batch, 3 * state});
        Tensor to_old_cell = wanted[4] ? opwright::new_empty(input, {batch, state}) : Tensor();
        in_parallel(Backward<T>{{of_new_h.from(0), {}},
                                {of_new_cell.from(0), {}},
                                of_gates.from(0),
                                numbers_of<T>(gates),
                                numbers_of<T>(new_cell),
                                memory_of<T>(to_products),
                                wanted[4] ? memory_of<T>(to_old_cell) : nullptr,
                                state},
                    batch, state);
        Tensor to_input, to_weights, to_bias, to_old_h;
        if (wanted[0]) {
            to_input = opwright::empty_like(input);
            multiply(to_input, to_products, columns(weights, state, features));
        }
        if (wanted[1]) {
            to_weights = opwright::empty_like(weights);
            multiply(to_weights, transposed(to_products), side_by_side(old_h, input));
        }
        if (wanted[2]) to_bias = sum_of_rows<T>(to_products, batch, 3 * state);
        if (wanted[3]) {
            to_old_h = opwright::empty_like(old_h);
            multiply(to_old_h, to_products, columns(weights, 0, state));
        }
        return {to_input, to_weights, to_bias, to_old_h, to_old_cell};
    });
}

}  // namespace
}  // namespace lltm

OPWRIGHT_IMPL(lltm, CPU, m) {
    m.impl("cell", OPWRIGHT_FN(lltm::cell));
    m.impl("cell_with_gates", OPWRIGHT_FN(lltm::cell_with_gates));
    m.impl("cell_with_gates_backward", OPWRIGHT_FN(lltm::cell_with_gates_backward));
}

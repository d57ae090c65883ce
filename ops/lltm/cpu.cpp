// The operators of op.py on the CPU: matrix products by PyTorch, and what stands between them in one pass.
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "matrix.h"
#include "pointwise.h"
#include "small_step.h"
#include "tensors.h"

namespace lltm {

InstructionSet instruction_set() {
    static const InstructionSet set = [] {
#if defined(__x86_64__)
        const char* asked = std::getenv("LLTM_SIMD");
        const std::string_view at_most = asked ? asked : "";
        const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
        if (avx512 && at_most.empty()) return InstructionSet::avx512;
        if (avx2 && at_most != "baseline") return InstructionSet::avx2;
#endif
        return InstructionSet::baseline;
    }();
    return set;
}

namespace {

constexpr int64_t grain = 1 << 13;  // fewer elements than this are not worth waking a thread for

// ---- Numbers of tensors ----

template <class T>
const T* numbers_of(const Tensor& tensor) {
    return static_cast<const T*>(tensor.const_data_ptr());
}

template <class T>
T* memory_of(Tensor& tensor) {
    return static_cast<T*>(tensor.mutable_data_ptr());
}

// Calls `act` with a number of the C++ type that the tensor's memory holds.
template <class Act>
auto with_type_of(const Tensor& tensor, const Act& act) {
    if (tensor.scalar_type() == ScalarType::Float) return act(float());
    if (tensor.scalar_type() == ScalarType::Double) return act(double());
    return act(BFloat16());
}

// The rows of an incoming gradient, which may be absent, or expanded, and is copied only where neither reading fits.
template <class T>
class IncomingRows {
  public:
    IncomingRows(const std::optional<Tensor>& grad, const char* name, const Tensor& input,
                 std::initializer_list<int64_t> sizes) {
        if (!grad.has_value()) return;
        check_like(*grad, name, input, sizes);
        tensor_ = *grad;
        width_ = tensor_.size(-1);
        const int64_t last = tensor_.stride(-1);
        const bool fits = tensor_.dim() == 2 || tensor_.stride(0) == tensor_.size(1) * tensor_.stride(1);
        if (!fits || (last != 0 && last != 1)) tensor_ = torch::stable::contiguous(tensor_);
    }

    // From row `first` on.
    Rows<T> from(int64_t first) const {
        if (!tensor_.defined()) return {};
        const int64_t stride = tensor_.stride(-2);
        return {numbers_of<T>(tensor_) + first * stride, stride, tensor_.stride(-1) == 0 && width_ > 1};
    }

  private:
    Tensor tensor_;
    int64_t width_ = 0;
};

// ---- Loops ----

// Runs a job over `count` things of `each` elements, in PyTorch's own threads.
template <class Job>
void in_parallel(const Job& job, int64_t count, int64_t each) {
    torch::stable::parallel_for(0, count, std::max<int64_t>(1, grain / std::max<int64_t>(1, each)),
                                [&](int64_t begin, int64_t end) { run(job, begin, end); });
}

// [left right], row by row.
Tensor side_by_side(const Tensor& left, const Tensor& right) {
    const Tensor parts[2] = {row_major(left), row_major(right)};
    const int64_t count = left.size(0);
    Tensor joined = torch::stable::new_empty(left, {count, left.size(1) + right.size(1)});
    const std::size_t bytes[2] = {static_cast<std::size_t>(left.size(1) * left.element_size()),
                                  static_cast<std::size_t>(right.size(1) * right.element_size())};
    const auto* from_left = static_cast<const char*>(parts[0].const_data_ptr());
    const auto* from_right = static_cast<const char*>(parts[1].const_data_ptr());
    auto* into = static_cast<char*>(joined.mutable_data_ptr());
    torch::stable::parallel_for(0, count, std::max<int64_t>(1, 8 * grain / std::max<int64_t>(1, bytes[0] + bytes[1])),
                                [&](int64_t begin, int64_t end) {
                                    for (int64_t row = begin; row < end; ++row) {
                                        char* at = into + row * (bytes[0] + bytes[1]);
                                        std::memcpy(at, from_left + row * bytes[0], bytes[0]);
                                        std::memcpy(at + bytes[0], from_right + row * bytes[1], bytes[1]);
                                    }
                                });
    return joined;
}

// ---- Small steps ----

// Rows turned into columns, for the lanes of SmallStep: (depth, batch), with zeros up to a whole vector.
template <class T>
class Lanes {
  public:
    Lanes(int64_t depth, int64_t batch)
        : stride_((batch + widest - 1) / widest * widest),
          numbers_(static_cast<T*>(::operator new(depth * stride_ * sizeof(T), std::align_val_t(64)))) {
        if (stride_ > batch) std::memset(numbers_.get(), 0, depth * stride_ * sizeof(T));
    }

    void take(int64_t first, const T* from, int64_t batch, int64_t width) {
        for (int64_t column = 0; column < width; ++column)
            for (int64_t row = 0; row < batch; ++row)
                numbers_.get()[(first + column) * stride_ + row] = from[row * width + column];
    }

    const T* numbers() const { return numbers_.get(); }
    int64_t stride() const { return stride_; }

  private:
    static constexpr int64_t widest = 64 / sizeof(T);
    struct Free {
        void operator()(T* numbers) const { ::operator delete(numbers, std::align_val_t(64)); }
    };
    int64_t stride_;
    std::unique_ptr<T, Free> numbers_;
};

// Whether SmallStep is the faster one: measured, see docs/lltm.md.
template <class T>
bool is_small(int64_t batch, int64_t state, int64_t depth) {
    if constexpr (std::is_same_v<T, BFloat16>) {
        return false;
    } else {
        if (getenv("LLTM_BIG")) return false; if (getenv("LLTM_SMALL")) return true;
        const int64_t lanes = lanes_of(instruction_set(), sizeof(T));
        return state % SmallStep<T>::tile == 0 && 2 * batch > lanes && batch <= 4 * lanes &&
               3 * state * depth * int64_t{sizeof(T)} <= 1 << 20;
    }
}

template <class T>
void run_small(const SmallStep<T>& step) {
    constexpr int64_t tile = SmallStep<T>::tile;
    // A multiplication and an addition are far less than what `grain` counts.
    const int64_t each = std::max<int64_t>(1, step.depth * step.batch * 3 * tile / 16);
    torch::stable::parallel_for(0, step.state / tile, std::max<int64_t>(1, grain / each),
                                [&](int64_t begin, int64_t end) { run(step, begin * tile, end * tile); });
}

// ---- One step ----

template <class T>
std::tuple<Tensor, Tensor, Tensor> step(const Sizes& sizes, const Tensor& input, const Tensor& weights,
                                        const Tensor& bias, const Tensor& old_h, const Tensor& old_cell,
                                        bool keep_gates) {
    const auto& [steps, batch, features, state] = sizes;
    const Tensor biases = row_major(bias);
    const Tensor cells = row_major(old_cell);
    Tensor new_h = torch::stable::new_empty(input, {batch, state});
    Tensor new_cell = torch::stable::new_empty(input, {batch, state});
    if constexpr (!std::is_same_v<T, BFloat16>) {
        if (is_small<T>(batch, state, state + features)) {
            const Tensor dense = row_major(weights);
            Tensor gates = keep_gates ? torch::stable::new_empty(input, {batch, 3 * state}) : Tensor();
            Lanes<T> given(state + features, batch);
            given.take(0, numbers_of<T>(row_major(old_h)), batch, state);
            given.take(state, numbers_of<T>(row_major(input)), batch, features);
            run_small(SmallStep<T>{.weights = numbers_of<T>(dense),
                                   .given = given.numbers(),
                                   .products = nullptr,
                                   .bias = numbers_of<T>(biases),
                                   .old_cell = numbers_of<T>(cells),
                                   .new_h = memory_of<T>(new_h),
                                   .new_cell = memory_of<T>(new_cell),
                                   .gates = keep_gates ? memory_of<T>(gates) : nullptr,
                                   .weights_stride = state + features,
                                   .given_stride = given.stride(),
                                   .depth = state + features,
                                   .batch = batch,
                                   .state = state});
            return {new_h, new_cell, gates};
        }
    }
    Tensor products = torch::stable::new_empty(input, {batch, 3 * state});
    multiply(products, side_by_side(old_h, input), transposed(weights));
    T* sums = memory_of<T>(products);
    in_parallel(Forward<T>{sums, numbers_of<T>(biases), numbers_of<T>(cells), memory_of<T>(new_h),
                           memory_of<T>(new_cell), keep_gates ? sums : nullptr, state},
                batch, state);
    return {new_h, new_cell, products};
}

constexpr auto dtypes = {ScalarType::Float, ScalarType::Double, ScalarType::BFloat16};

std::tuple<Tensor, Tensor, Tensor> checked_step(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                                const Tensor& old_h, const Tensor& old_cell, bool keep_gates) {
    const Sizes sizes = checked_sizes(input, 2, DeviceType::CPU, dtypes, weights, old_h);
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

using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

template <class T>
Tensor sum_of_rows(const Tensor& products, int64_t count, int64_t width) {
    Tensor sum = torch::stable::new_empty(products, {width});
    in_parallel(SumOfRows<T>{numbers_of<T>(products), memory_of<T>(sum), count, width}, width, count);
    return sum;
}

Gradients cell_with_gates_backward(const std::optional<Tensor>& grad_0, const std::optional<Tensor>& grad_1,
                                   const std::optional<Tensor>& grad_2, const Tensor& input, const Tensor& weights,
                                   const Tensor& old_h, const Tensor& result_1, const Tensor& result_2,
                                   const std::vector<bool>& wanted) {
    const Sizes sizes = checked_sizes(input, 2, DeviceType::CPU, dtypes, weights, old_h);
    const auto& [steps, batch, features, state] = sizes;
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
        Tensor to_products = torch::stable::new_empty(input, {batch, 3 * state});
        Tensor to_old_cell = torch::stable::new_empty(input, {batch, state});
        in_parallel(Backward<T>{{of_new_h.from(0), {}},
                                {of_new_cell.from(0), {}},
                                of_gates.from(0),
                                numbers_of<T>(gates),
                                numbers_of<T>(new_cell),
                                memory_of<T>(to_products),
                                memory_of<T>(to_old_cell),
                                state},
                    batch, state);
        Tensor to_input, to_weights, to_bias, to_old_h;
        if (wanted[0]) {
            to_input = torch::stable::empty_like(input);
            multiply(to_input, to_products, columns(weights, state, features));
        }
        if (wanted[1]) {
            to_weights = torch::stable::empty_like(weights);
            multiply(to_weights, transposed(to_products), side_by_side(old_h, input));
        }
        if (wanted[2]) to_bias = sum_of_rows<T>(to_products, batch, 3 * state);
        if (wanted[3]) {
            to_old_h = torch::stable::empty_like(old_h);
            multiply(to_old_h, to_products, columns(weights, 0, state));
        }
        return {to_input, to_weights, to_bias, to_old_h, wanted[4] ? to_old_cell : Tensor()};
    });
}

// ---- A sequence ----

template <class T>
std::tuple<Tensor, Tensor, Tensor, Tensor> all_steps(const Sizes& sizes, const Tensor& input, const Tensor& weights,
                                                     const Tensor& bias, const Tensor& old_h, const Tensor& old_cell,
                                                     bool keep) {
    const auto& [steps, batch, features, state] = sizes;
    const Tensor biases = row_major(bias);
    const Tensor first_h = row_major(old_h);
    const Tensor first_cell = row_major(old_cell);
    // What the input gives to the gates, for all steps at once.
    Tensor products = torch::stable::new_empty(input, {steps, batch, 3 * state});
    multiply(rows(products, 0, sizes.rows(), 3 * state), rows(row_major(input), 0, sizes.rows(), features),
             transposed(columns(weights, state, features)));
    Tensor outputs = torch::stable::new_empty(input, {steps, batch, state});
    Tensor new_cell = torch::stable::new_empty(input, {batch, state});
    Tensor cells = keep ? torch::stable::new_empty(input, {steps, batch, state}) : Tensor();
    const int64_t step_size = batch * state;
    T* sums = memory_of<T>(products);
    T* into_h = memory_of<T>(outputs);
    T* into_cell = keep ? memory_of<T>(cells) : memory_of<T>(new_cell);
    const T* last_h = numbers_of<T>(first_h);
    const T* last_cell = numbers_of<T>(first_cell);
    const bool is_in_lanes = is_small<T>(batch, state, state);
    const Tensor recurrent = transposed(columns(weights, 0, state));
    [[maybe_unused]] const Tensor dense = is_in_lanes ? row_major(weights) : Tensor();
    [[maybe_unused]] Lanes<std::conditional_t<std::is_same_v<T, BFloat16>, float, T>> given(is_in_lanes ? state : 0, batch);
    for (int64_t at = 0; at < steps; ++at) {
        bool done = false;
        if constexpr (!std::is_same_v<T, BFloat16>) {
            if (is_in_lanes) {
                given.take(0, last_h, batch, state);
                run_small(SmallStep<T>{.weights = numbers_of<T>(dense),
                                       .given = given.numbers(),
                                       .products = sums,
                                       .bias = numbers_of<T>(biases),
                                       .old_cell = last_cell,
                                       .new_h = into_h,
                                       .new_cell = into_cell,
                                       .gates = keep ? sums : nullptr,
                                       .weights_stride = state + features,
                                       .given_stride = given.stride(),
                                       .depth = state,
                                       .batch = batch,
                                       .state = state});
                done = true;
            }
        }
        if (!done) {
            add_product(rows(products, at * batch, batch, 3 * state),
                        at == 0 ? first_h : rows(outputs, (at - 1) * batch, batch, state), recurrent);
            in_parallel(Forward<T>{sums, numbers_of<T>(biases), last_cell, into_h, into_cell, keep ? sums : nullptr, state}, batch, state);
        }
        last_h = into_h;
        last_cell = into_cell;
        sums += 3 * step_size;
        into_h += step_size;
        if (keep) into_cell += step_size;
    }
    if (keep) std::memcpy(new_cell.mutable_data_ptr(), last_cell, step_size * sizeof(T));
    return {outputs, new_cell, cells, products};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> checked_steps(const Tensor& input, const Tensor& weights,
                                                         const Tensor& bias, const Tensor& old_h,
                                                         const Tensor& old_cell, bool keep) {
    const Sizes sizes = checked_sizes(input, 3, DeviceType::CPU, dtypes, weights, old_h);
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
    const Sizes sizes = checked_sizes(input, 3, DeviceType::CPU, dtypes, weights, old_h);
    const auto& [steps, batch, features, state] = sizes;
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
        Tensor to_products = torch::stable::new_empty(input, {steps, batch, 3 * state});
        // What flows from a step to the one before it.
        Tensor to_h = torch::stable::new_empty(input, {batch, state});
        Tensor to_cell = torch::stable::new_empty(input, {batch, state});
        const Rows<T> carried_h{numbers_of<T>(to_h), state, false};
        const Rows<T> carried_cell{numbers_of<T>(to_cell), state, false};
        const Tensor recurrent = columns(weights, 0, state);
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
            if (at > 0) multiply(to_h, rows(to_products, row, batch, 3 * state), recurrent);
        }
        const Tensor all = rows(to_products, 0, sizes.rows(), 3 * state);
        const Tensor first = rows(to_products, 0, batch, 3 * state);
        Tensor to_input, to_weights, to_bias, to_old_h;
        if (wanted[0]) {
            to_input = torch::stable::empty_like(input);
            if (to_input.is_contiguous()) {
                multiply(rows(to_input, 0, sizes.rows(), features), all, columns(weights, state, features));
            } else {
                Tensor dense = torch::stable::new_empty(input, {steps, batch, features});
                multiply(rows(dense, 0, sizes.rows(), features), all, columns(weights, state, features));
                torch::stable::copy_(to_input, dense);
            }
        }
        if (wanted[1]) {
            to_weights = torch::stable::empty_like(weights);
            multiply(columns(to_weights, state, features), transposed(all),
                     rows(row_major(input), 0, sizes.rows(), features));
            const Tensor of_old_h = columns(to_weights, 0, state);
            multiply(of_old_h, transposed(first), old_h);
            if (steps > 1)
                add_product(of_old_h, transposed(rows(to_products, batch, sizes.rows() - batch, 3 * state)),
                            rows(outputs, 0, sizes.rows() - batch, state));
        }
        if (wanted[2]) to_bias = sum_of_rows<T>(to_products, sizes.rows(), 3 * state);
        if (wanted[3]) {
            to_old_h = torch::stable::empty_like(old_h);
            multiply(to_old_h, first, recurrent);
        }
        return {to_input, to_weights, to_bias, to_old_h, wanted[4] ? to_cell : Tensor()};
    });
}

}  // namespace
}  // namespace lltm

OPWRIGHT_IMPL(lltm, CPU, m) {
    m.impl("cell", OPWRIGHT_FN(lltm::cell));
    m.impl("cell_with_gates", OPWRIGHT_FN(lltm::cell_with_gates));
    m.impl("cell_with_gates_backward", OPWRIGHT_FN(lltm::cell_with_gates_backward));
    m.impl("sequence", OPWRIGHT_FN(lltm::sequence));
    m.impl("sequence_with_gates", OPWRIGHT_FN(lltm::sequence_with_gates));
    m.impl("sequence_with_gates_backward", OPWRIGHT_FN(lltm::sequence_with_gates_backward));
}

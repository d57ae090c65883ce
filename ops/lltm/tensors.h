// The checks of arguments that all devices share.
#pragma once

#include <opwright/check.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <tuple>
#include <vector>

namespace lltm {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

// The gradients of input, weights, bias, old_h and old_cell; undefined if not needed.
using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

// The sizes of a call; `steps` is unused for a single step.
struct Sizes {
    int64_t steps;
    int64_t batch;
    int64_t features;
    int64_t state;

    int64_t rows() const { return steps * batch; }
};

inline void check_like(const Tensor& tensor, const char* name, const Tensor& input,
                       std::initializer_list<int64_t> sizes) {
    // opwright: equivalent: a machine without a GPU has one device
    check::same_device(tensor, name, input, "input");
    check::dtype(tensor, name, input.scalar_type());
    check::sizes(tensor, name, sizes);
}

// Checks the arguments of `cell` (input of 2 dimensions) and `sequence` (3) before any memory is accessed.
inline Sizes checked_sizes(const Tensor& input, int64_t rank, DeviceType device,
                           std::initializer_list<ScalarType> dtypes, const Tensor& weights, const Tensor& old_h) {
    // opwright: equivalent: a machine without a GPU has one device
    check::device(input, "input", device);
    check::dtype(input, "input", dtypes);
    check::rank(input, "input", rank);
    check::rank(old_h, "old_h", 2);
    // opwright: equivalent [2]: nothing counts the steps of `cell`
    const int64_t steps = rank == 3 ? input.size(0) : 1;
    const Sizes sizes{steps, input.size(rank - 2), input.size(rank - 1), old_h.size(1)};
    OPWRIGHT_CHECK(steps > 0, "input must have at least one step, got shape ", input.sizes());
    check_like(old_h, "old_h", input, {sizes.batch, sizes.state});
    check_like(weights, "weights", input, {3 * sizes.state, sizes.state + sizes.features});
    return sizes;
}

inline void check_start(const Tensor& bias, const Tensor& old_cell, const Tensor& input, const Sizes& sizes) {
    check_like(bias, "bias", input, {3 * sizes.state});
    check_like(old_cell, "old_cell", input, {sizes.batch, sizes.state});
}

inline void check_wanted(const std::vector<bool>& wanted) {
    OPWRIGHT_CHECK(wanted.size() == 5, "wanted must have 5 flags, for input, weights, bias, old_h and old_cell, got ",
                   wanted.size());
}

// A row-major tensor: copies a view with other strides, but not a contiguous tensor.
inline Tensor row_major(const Tensor& tensor) {
    return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

}  // namespace lltm

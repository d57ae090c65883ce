// Code that both extensions share: argument checks, the products of the backward, and the names that Python sees.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <cstdint>
#include <tuple>

namespace lltm {

// new_h, new_cell, and the other arguments of backward: the three gates after their activations (B, 3H), and
// [old_h, input] (B, H + I).
using Step = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// The gradients of input, weights, bias, old_h and old_cell. An unneeded one is undefined, which is None in Python.
using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
using Wanted = std::array<bool, 5>;

// Disables autocast during its lifetime: a product in another dtype than its arguments would not match the next steps.
class AutocastOff {
  public:
    AutocastOff() : guard_(c10::autocast_dispatch_keyset) {}

  private:
    c10::impl::ExcludeDispatchKeyGuard guard_;
};

// Compares arguments with the first of them, and with sizes from some of them.
struct Checks {
    const at::Tensor& first;
    const char* first_name;
    const char* origin;  // which tensors determine batch, state and features

    // `meaning` gives the names of the sizes: (batch, state).
    void operator()(const at::Tensor& tensor, const char* name, at::IntArrayRef sizes, const char* meaning) const {
        TORCH_CHECK(tensor.device() == first.device(), name, " must be on the device of ", first_name, ", ",
                    first.device(), ", got ", tensor.device(), ": move it with .to(", first_name, ".device)");
        TORCH_CHECK(tensor.scalar_type() == first.scalar_type(), name, " must have the dtype of ", first_name, ", ",
                    first.scalar_type(), ", got ", tensor.scalar_type(), ": convert it with .to(", first_name,
                    ".dtype)");
        TORCH_CHECK(tensor.sizes().equals(sizes), name, " must have shape ", sizes, ", ", meaning, ", got ",
                    tensor.sizes(), ": ", origin);
    }
};

inline void check_matrix(const at::Tensor& tensor, const char* name, const char* meaning) {
    TORCH_CHECK(tensor.dim() == 2, name, " must have 2 dimensions, ", meaning, ", got shape ", tensor.sizes());
}

inline void check_forward(const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias,
                          const at::Tensor& old_h, const at::Tensor& old_cell) {
    const at::ScalarType dtype = input.scalar_type();
    TORCH_CHECK(dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16,
                "input must be Float, Double, Half or BFloat16, got ", dtype, ": convert it with .to(torch.float32)");
    check_matrix(input, "input", "(batch, features)");
    check_matrix(old_h, "old_h", "(batch, state)");
    const int64_t batch = input.size(0);
    const int64_t features = input.size(1);
    const int64_t state = old_h.size(1);
    const Checks check{input, "input", "batch and features are those of input, state is that of old_h"};
    check(old_h, "old_h", {batch, state}, "(batch, state)");
    check(old_cell, "old_cell", {batch, state}, "(batch, state)");
    check(weights, "weights", {3 * state, state + features}, "(3 * state, state + features)");
    check(bias, "bias", {3 * state}, "(3 * state)");
}

inline void check_backward(const at::Tensor& grad_h, const at::Tensor& grad_cell, const at::Tensor& new_cell,
                           const at::Tensor& gates, const at::Tensor& joined, const at::Tensor& weights) {
    check_matrix(new_cell, "new_cell", "(batch, state)");
    check_matrix(joined, "joined", "(batch, state + features)");
    const int64_t batch = new_cell.size(0);
    const int64_t state = new_cell.size(1);
    const int64_t columns = joined.size(1);
    TORCH_CHECK(columns >= state, "joined must have a column for each of the ", state, " of new_cell, got ", columns,
                ": pass what forward returned");
    const Checks check{new_cell, "new_cell", "batch and state are those of new_cell, features are the rest of joined"};
    check(grad_h, "grad_h", {batch, state}, "(batch, state)");
    check(grad_cell, "grad_cell", {batch, state}, "(batch, state)");
    check(gates, "gates", {batch, 3 * state}, "(batch, 3 * state)");
    check(joined, "joined", {batch, columns}, "(batch, state + features)");
    check(weights, "weights", {3 * state, columns}, "(3 * state, state + features)");
}

// The matrix products of the backward that are needed: `d_gates` is the gradient of the activations' inputs.
inline Gradients products(const at::Tensor& d_gates, const at::Tensor& d_old_cell, const at::Tensor& joined,
                          const at::Tensor& weights, const Wanted& wanted) {
    const auto [input, in_weights, in_bias, old_h, old_cell] = wanted;
    const int64_t state = d_old_cell.size(1);
    at::Tensor d_input;
    at::Tensor d_old_h;
    if (input || old_h) {
        // One product for both; if only one is needed, only its columns.
        const int64_t begin = old_h ? 0 : state;
        const int64_t end = input ? weights.size(1) : state;
        const at::Tensor d_joined = d_gates.mm(weights.slice(/*dim=*/1, begin, end));
        if (old_h) d_old_h = d_joined.slice(/*dim=*/1, 0, state);
        if (input) d_input = d_joined.slice(/*dim=*/1, state - begin);
    }
    return {d_input, in_weights ? d_gates.t().mm(joined) : at::Tensor(),
            in_bias ? d_gates.sum(/*dim=*/0) : at::Tensor(), d_old_h, old_cell ? d_old_cell : at::Tensor()};
}

// Wrapped, so that PyTorch's warnings become Python's, and other threads of the program run during a call.
template <class Forward, class Backward>
void bind(py::module_& m, Forward forward, Backward backward) {
    m.def("forward", torch::wrap_pybind_function_no_gil(forward), R"(One step of the cell.

Args:
    input: (B, I), float32, float64, float16 or bfloat16; the others have its dtype and device.
    weights: (3H, H + I): rows for the input gate, the output gate and the candidate; columns for old_h and input.
    bias: (3H,).
    old_h: (B, H).
    old_cell: (B, H).

Returns:
    new_h (B, H), new_cell (B, H), and for backward: gates (B, 3H), joined (B, H + I).)",
          py::arg("input"), py::arg("weights"), py::arg("bias"), py::arg("old_h"), py::arg("old_cell"));
    m.def("backward", torch::wrap_pybind_function_no_gil(backward), R"(The gradients of one step.

Args:
    grad_h: (B, H), the gradient of new_h.
    grad_cell: (B, H), the gradient of new_cell.
    new_cell: (B, H), as forward returned it.
    gates: (B, 3H), likewise.
    joined: (B, H + I), likewise.
    weights: (3H, H + I), as passed to forward.
    wanted: for input, weights, bias, old_h and old_cell, whether the gradient is needed.

Returns:
    The five gradients, in that order; None for those not needed.)",
          py::arg("grad_h"), py::arg("grad_cell"), py::arg("new_cell"), py::arg("gates"), py::arg("joined"),
          py::arg("weights"), py::arg("wanted"));
}

}  // namespace lltm

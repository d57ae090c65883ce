// The kernel of an operator whose gradient Python records or rejects.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "argument_layout.h"

namespace opwright::autograd {

// Calls Python only if autograd records one of the given arguments, because a Python kernel takes several times as long
// as a C++ kernel.
class PythonGradient final : public c10::OperatorKernel {
  public:
    // `recorded` is an operator with the same schema, whose kernel for the Autograd key is the Python kernel.
    PythonGradient(c10::OperatorHandle recorded, std::vector<std::size_t> arguments)
        : recorded_(std::move(recorded)), arguments_(std::move(arguments)) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
        if (is_recorded(*stack, stack->size() - op.schema().arguments().size())) {
            recorded_.redispatchBoxed(keys, stack);
        } else {
            const at::AutoDispatchBelowAutograd guard;
            op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
        }
    }

  private:
    bool is_recorded(const torch::jit::Stack& stack, std::size_t base) const {
        const bool records = c10::GradMode::is_enabled();
        bool found = false;
        for (const std::size_t index : arguments_) {
            for_each_tensor(stack[base + index], [&](const at::Tensor& tensor) {
                found |=
                    tensor.defined() && ((records && tensor.requires_grad()) || tensor._fw_grad(/*level=*/0).defined());
            });
        }
        return found;
    }

    c10::OperatorHandle recorded_;
    std::vector<std::size_t> arguments_;
};

}  // namespace opwright::autograd

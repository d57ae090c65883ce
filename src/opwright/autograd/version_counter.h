// Counts the mutations of tensors.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "argument_layout.h"

namespace opwright::autograd {

// The kernel of an operator for the ADInplaceOrView key. It increments the versions of the arguments that the operator
// mutates, so that a backward that saved one of them unmodified raises an error.
class VersionCounter final : public c10::OperatorKernel {
  public:
    explicit VersionCounter(std::vector<std::size_t> mutated) : mutated_(std::move(mutated)) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
        const std::size_t base = stack->size() - op.schema().arguments().size();
        // Before the kernel runs, because it may mutate a tensor and then fail.
        for (const std::size_t index : mutated_) {
            for_each_tensor((*stack)[base + index], [](const at::Tensor& tensor) {
                if (tensor.defined() && !tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
            });
        }
        op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
    }

  private:
    std::vector<std::size_t> mutated_;
};

}  // namespace opwright::autograd

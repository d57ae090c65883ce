// Supports the transformations of torch.func (grad, vmap, jvp and others) in gradients.
#pragma once

#include <ATen/FuncTorchTLS.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace opwright::autograd {

// Whether the current call runs inside a transformation of torch.func.
inline bool is_in_functorch_transform() {
    return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

// torch::autograd::Function refuses to run inside a torch.func transformation, because in general it would be called
// once for all transformations instead of once for each. The dispatcher calls the bridge's kernel as it calls PyTorch's
// own kernels, so this reason does not apply. The thread-local state of torch.func is removed for that check only, and
// restored before the forward runs.
class SuspendedFunctorch {
  public:
    explicit SuspendedFunctorch(at::TensorList tensors) {
        if (!at::functorch::functorchTLSAccessor()) return;
        // A mutated view recomputes its gradient edge on access, and needs the state to do so.
        for (const at::Tensor& tensor : tensors) torch::autograd::impl::gradient_edge(tensor);
        state_ = std::move(at::functorch::functorchTLSAccessor());
    }
    SuspendedFunctorch(const SuspendedFunctorch&) = delete;
    SuspendedFunctorch& operator=(const SuspendedFunctorch&) = delete;
    ~SuspendedFunctorch() { resume(); }

    void resume() {
        if (state_) at::functorch::functorchTLSAccessor() = std::move(state_);
    }

  private:
    std::unique_ptr<at::functorch::FuncTorchTLSBase> state_;
};

}  // namespace opwright::autograd

// The transformations of torch.func (grad, vmap, jvp and so on), as far as a gradient has to know of them.
#pragma once

#include <ATen/FuncTorchTLS.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace opwright::autograd {

// Whether torch.func transforms what runs now.
inline bool is_in_functorch_transform() {
    return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

// torch::autograd::Function refuses to run inside of the transformations of torch.func, because in general it would be
// entered once, from outside, and not once for each transformation. The kernel below is entered by the dispatcher, as
// PyTorch's own are. So the state of torch.func is put out of sight of that one check, and is back for the forward.
class SuspendedFunctorch {
  public:
    explicit SuspendedFunctorch(at::TensorList tensors) {
        if (!at::functorch::functorchTLSAccessor()) return;
        // A view that was written to makes its place in the graph anew when it is asked, and needs the state for it.
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

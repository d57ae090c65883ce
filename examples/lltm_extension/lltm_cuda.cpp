// The cell on a CUDA device: PyTorch's matrix products, and one fused kernel between them.
//
// torch/extension.h would work too. Including only the required headers halves the compile time.
#include "lltm_cuda.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <cstdint>

#include "lltm.h"

namespace {

void check_cuda(const at::Tensor& tensor, const char* name) {
    TORCH_CHECK(tensor.is_cuda(), name, " must be on a CUDA device, got ", tensor.device(),
                ": move it with .to('cuda'), or use the extension built from lltm.cpp");
}

// The products' (B, 3H) as the kernels' (B, 3, H): a view.
at::Tensor by_gate(const at::Tensor& gates) {
    return gates.unflatten(/*dim=*/1, {3, gates.size(1) / 3});
}

lltm::Step forward(const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias, const at::Tensor& old_h,
                   const at::Tensor& old_cell) {
    check_cuda(input, "input");
    lltm::check_forward(input, weights, bias, old_h, old_cell);
    const lltm::AutocastOff autocast_off;
    const at::Tensor joined = at::cat({old_h, input}, /*dim=*/1);
    const at::Tensor gates = at::addmm(bias, joined, weights.t());
    const at::Tensor new_h = at::empty(old_cell.sizes(), old_cell.options());
    const at::Tensor new_cell = at::empty(old_cell.sizes(), old_cell.options());
    lltm_cuda::activate(by_gate(gates), old_cell, new_h, new_cell);
    return {new_h, new_cell, gates, joined};
}

lltm::Gradients backward(const at::Tensor& grad_h, const at::Tensor& grad_cell, const at::Tensor& new_cell,
                         const at::Tensor& gates, const at::Tensor& joined, const at::Tensor& weights,
                         const lltm::Wanted& wanted) {
    check_cuda(new_cell, "new_cell");
    lltm::check_backward(grad_h, grad_cell, new_cell, gates, joined, weights);
    const lltm::AutocastOff autocast_off;
    const at::Tensor d_gates = at::empty(gates.sizes(), gates.options());
    const at::Tensor d_old_cell = at::empty(new_cell.sizes(), new_cell.options());
    lltm_cuda::differentiate(grad_h, grad_cell, new_cell, by_gate(gates), by_gate(d_gates), d_old_cell);
    return lltm::products(d_gates, d_old_cell, joined, weights, wanted);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.doc() = "One step of a long-long-term-memory cell on a CUDA device, with fused kernels, and its gradients.";
    lltm::bind(m, forward, backward);
}

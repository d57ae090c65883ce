// The kernels of lltm_cuda_kernel.cu, as lltm_cuda.cpp calls them: sizes, dtypes and devices are checked before.
#pragma once

#include <ATen/core/Tensor.h>

namespace lltm_cuda {

// What one kernel computes of the forward. `gates` (B, 3, H) becomes its own activations; `new_h` and `new_cell` (B, H)
// are written.
void activate(const at::Tensor& gates, const at::Tensor& old_cell, const at::Tensor& new_h, const at::Tensor& new_cell);

// What one kernel computes of the backward: `d_gates` (B, 3, H), of what the activations took, and `d_old_cell` (B, H).
void differentiate(const at::Tensor& grad_h, const at::Tensor& grad_cell, const at::Tensor& new_cell,
                   const at::Tensor& gates, const at::Tensor& d_gates, const at::Tensor& d_old_cell);

}  // namespace lltm_cuda

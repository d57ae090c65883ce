// The kernels of lltm_cuda_kernel.cu. lltm_cuda.cpp checks sizes, dtypes and devices before it calls them.
#pragma once

#include <ATen/core/Tensor.h>

namespace lltm_cuda {

// The forward kernel. It replaces `gates` (B, 3, H) with their activations, and writes `new_h` and `new_cell` (B, H).
void activate(const at::Tensor& gates, const at::Tensor& old_cell, const at::Tensor& new_h, const at::Tensor& new_cell);

// The backward kernel. It writes `d_gates` (B, 3, H), the gradient of the activations' inputs, and `d_old_cell` (B, H).
void differentiate(const at::Tensor& grad_h, const at::Tensor& grad_cell, const at::Tensor& new_cell,
                   const at::Tensor& gates, const at::Tensor& d_gates, const at::Tensor& d_old_cell);

}  // namespace lltm_cuda

// PyTorch's own products of matrices on the CPU.
#pragma once

#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>

#include "../views.h"

namespace lltm {

// into = left right. Calls the CPU's kernel directly: the dispatcher would cost a microsecond more.
inline void multiply(Tensor into, const Tensor& left, const Tensor& right) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(into.get(), left.get(), right.get()));
}

// into += left right
inline void add_product(Tensor into, const Tensor& left, const Tensor& right) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(into.get(), into.get(), left.get(), right.get(), 1, 1));
}

}  // namespace lltm

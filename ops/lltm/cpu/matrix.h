// Products of matrices on the CPU, computed by PyTorch.
#pragma once

#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>
#include <torch/csrc/stable/ops.h>

#include "../tensors.h"
#include "../views.h"
#include "bfloat16_product.h"

namespace lltm {

// The matrix itself, or a copy in float32 if it is bfloat16.
inline Tensor widened(const Tensor& of) {
    return of.scalar_type() == ScalarType::BFloat16 ? torch::stable::to(of, ScalarType::Float) : of;
}

// A factor of the products below: the matrix itself, or a copy in float32 if it is bfloat16 and the processor has no
// bfloat16 instructions. PyTorch's own bfloat16 products then take 3 to 40 times as long as those in float32.
inline Tensor factor(const Tensor& of) {
    // opwright: equivalent: only the speed and rounding depend on it
    return multiplies_bfloat16() ? of : widened(of);
}

// into = left right. Calls the CPU kernel directly: the dispatcher would take another microsecond.
inline void multiply(Tensor into, const Tensor& left, const Tensor& right) {
    const Tensor factors[2] = {factor(left), factor(right)};
    const bool fits = factors[0].scalar_type() == into.scalar_type();
    const Tensor product = fits ? into : opwright::new_empty(factors[0], {into.size(0), into.size(1)});
    TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(product.get(), factors[0].get(), factors[1].get()));
    if (!fits) torch::stable::copy_(into, product);
}

// into += left right
inline void add_product(Tensor into, const Tensor& left, const Tensor& right) {
    const Tensor terms[3] = {factor(into), factor(left), factor(right)};
    Tensor sum = terms[0];
    TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(sum.get(), sum.get(), terms[1].get(), terms[2].get(), 1, 1));
    if (sum.scalar_type() != into.scalar_type()) torch::stable::copy_(into, sum);
}

}  // namespace lltm

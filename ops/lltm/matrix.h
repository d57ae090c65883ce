// Matrices in tensors on the CPU: views of them without a copy, and PyTorch's own products.
#pragma once

#include <opwright/types.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>
#include <torch/csrc/stable/tensor.h>

#include <array>
#include <cstdint>

namespace lltm {

using opwright::Tensor;

// The same memory as a matrix of these sizes and strides, `offset` elements further on.
inline Tensor matrix(const Tensor& tensor, std::array<int64_t, 2> sizes, std::array<int64_t, 2> strides,
                     int64_t offset = 0) {
    AtenTensorHandle view = nullptr;
    TORCH_ERROR_CODE_CHECK(
        aoti_torch__reinterpret_tensor(tensor.get(), 2, sizes.data(), strides.data(), offset, &view));
    return Tensor(view);
}

// Rows [first, first + count) of what is row-major, and as a matrix has so many columns.
inline Tensor rows(const Tensor& tensor, int64_t first, int64_t count, int64_t columns) {
    return matrix(tensor, {count, columns}, {columns, 1}, first * columns);
}

inline Tensor columns(const Tensor& of, int64_t first, int64_t count) {
    return matrix(of, {of.size(0), count}, {of.stride(0), of.stride(1)}, first * of.stride(1));
}

inline Tensor transposed(const Tensor& of) {
    return matrix(of, {of.size(1), of.size(0)}, {of.stride(1), of.stride(0)});
}

// into = left right. Straight to the CPU's kernel: through the dispatcher it would cost a microsecond more.
inline void multiply(Tensor into, const Tensor& left, const Tensor& right) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_mm_out(into.get(), left.get(), right.get()));
}

// into += left right
inline void add_product(Tensor into, const Tensor& left, const Tensor& right) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(into.get(), into.get(), left.get(), right.get(), 1, 1));
}

}  // namespace lltm

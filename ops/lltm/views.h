// Matrices that are views of tensors on any device, without copies.
#pragma once

#include <opwright/types.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
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

// Rows [first, first + count) of a row-major tensor, as a matrix of `columns` columns.
inline Tensor rows(const Tensor& tensor, int64_t first, int64_t count, int64_t columns) {
    return matrix(tensor, {count, columns}, {columns, 1}, first * columns);
}

inline Tensor columns(const Tensor& of, int64_t first, int64_t count) {
    return matrix(of, {of.size(0), count}, {of.stride(0), of.stride(1)}, first * of.stride(1));
}

inline Tensor transposed(const Tensor& of) {
    return matrix(of, {of.size(1), of.size(0)}, {of.stride(1), of.stride(0)});
}

}  // namespace lltm

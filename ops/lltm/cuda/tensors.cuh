// Converts checked GPU tensors to the arguments of kernels, and calls PyTorch's matrix products.
#pragma once

#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/Dispatch_v2.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "../tensors.h"
#include "numbers.cuh"

namespace lltm::gpu {

constexpr auto dtypes = {ScalarType::Float, ScalarType::Double, ScalarType::Half, ScalarType::BFloat16};

// Calls `act` with a value of the tensor's C++ element type.
template <class Act>
auto with_type_of(const Tensor& tensor, const Act& act) {
    return THO_DISPATCH_V2(tensor.scalar_type(), "lltm", AT_WRAP([&] { return act(scalar_t()); }), ScalarType::Float,
                           ScalarType::Double, ScalarType::Half, ScalarType::BFloat16);
}

template <class T>
const T* numbers_of(const Tensor& tensor) {
    return static_cast<const T*>(tensor.const_data_ptr());
}

template <class T>
T* memory_of(const Tensor& tensor) {
    return tensor.defined() ? static_cast<T*>(tensor.mutable_data_ptr()) : nullptr;
}

template <class T>
Matrix<T> zeros() {
    const int64_t none[2] = {0, 0};
    return {nullptr, none, none};
}

// One matrix of a three-dimensional tensor.
template <class T>
Matrix<T> read(const Tensor& tensor, int64_t step = 0) {
    const int64_t* sizes = tensor.sizes().data();
    const int64_t* strides = tensor.strides().data();
    if (tensor.dim() == 2) return {numbers_of<T>(tensor), sizes, strides};
    return {numbers_of<T>(tensor) + step * strides[0], sizes + 1, strides + 1};
}

// Whether a tensor is one expanded value.
inline bool is_one_number(const Tensor& tensor) {
    bool is_one = tensor.numel() > 0;
    for (int64_t d = 0; d < tensor.dim(); ++d) is_one &= tensor.stride(d) == 0;
    return is_one;
}

template <class T>
Gradient<T> read(const std::optional<Tensor>& gradient, int64_t step = 0) {
    if (!gradient.has_value()) return {zeros<T>(), nullptr};
    if (is_one_number(*gradient)) return {zeros<T>(), numbers_of<T>(*gradient)};
    return {read<T>(*gradient, step), nullptr};
}

template <class T>
Matrix<T> read_row_major(const T* numbers, int64_t rows, int64_t columns) {
    const int64_t sizes[2] = {rows, columns};
    const int64_t strides[2] = {columns, 1};
    return {numbers, sizes, strides};
}

template <class T>
Matrix<T> read_as_row(const Tensor& tensor) {
    const int64_t sizes[2] = {1, tensor.size(0)};
    const int64_t strides[2] = {0, tensor.stride(0)};
    return {numbers_of<T>(tensor), sizes, strides};
}

template <class T>
Matrix<T> read_columns(const Tensor& tensor, int64_t first) {
    return {numbers_of<T>(tensor) + first * tensor.stride(1), tensor.sizes().data(), tensor.strides().data()};
}

template <class T>
Matrix<T> read_transposed(const Tensor& tensor) {
    const int64_t sizes[2] = {tensor.size(1), tensor.size(0)};
    const int64_t strides[2] = {tensor.stride(1), tensor.stride(0)};
    return {numbers_of<T>(tensor), sizes, strides};
}

template <class T>
Matrices<T> read_all(const Tensor& tensor) {
    if (tensor.dim() == 3) return {numbers_of<T>(tensor), tensor.sizes().data(), tensor.strides().data()};
    const int64_t sizes[3] = {1, tensor.size(0), tensor.size(1)};
    const int64_t strides[3] = {0, tensor.stride(0), tensor.stride(1)};
    return {numbers_of<T>(tensor), sizes, strides};
}

// Whether the elements of a row are adjacent, and each row starts at an address that is aligned for a vector.
inline bool is_aligned(const Tensor& tensor) {
    const int64_t last = tensor.dim() - 1;
    bool aligned = tensor.stride(last) == 1;
    aligned &= reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % vector_bytes == 0;
    for (int64_t d = 0; d < last; ++d)
        aligned &=
            tensor.size(d) < 2 || tensor.stride(d) * static_cast<int64_t>(tensor.element_size()) % vector_bytes == 0;
    return aligned;
}

inline bool is_aligned(const std::optional<Tensor>& gradient) {
    return !gradient.has_value() || is_one_number(*gradient) || is_aligned(*gradient);
}

// Whether a kernel can move the rows of these tensors, and its own rows of the state's size, in vectors.
template <class T, class... Tensors>
bool fits_vectors(int64_t state, const Tensors&... read) {
    return state % (vector_bytes / int64_t{sizeof(T)}) == 0 && (is_aligned(read) && ...);
}

inline void check_gradient(const std::optional<Tensor>& gradient, const char* name, const Tensor& input,
                           std::initializer_list<int64_t> sizes) {
    if (gradient.has_value()) check_like(*gradient, name, input, sizes);
}

// ---- Matrix products ----

// into = left right, by PyTorch, which requires operands that do not require a gradient: views never do.
inline void multiply(const Tensor& into, const Tensor& left, const Tensor& right) {
    std::array<StableIValue, 3> stack{torch::stable::detail::from(left), torch::stable::detail::from(right),
                                      torch::stable::detail::from(into)};
    TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::mm", "out", stack.data(), TORCH_ABI_VERSION));
    torch::stable::detail::to<Tensor>(stack[0]);  // the same tensor as `into`: releases it
}

// A matrix for products: the elements of a row or of a column are adjacent. A product would copy others in each call.
inline Tensor ready_for_products(const Tensor& tensor) {
    return tensor.stride(0) == 1 || tensor.stride(1) == 1 ? tensor : torch::stable::contiguous(tensor);
}

}  // namespace lltm::gpu

// New tensors for results, allocated without a call of PyTorch's dispatcher.
//
//     Tensor result = opwright::empty_like(x);
//     Tensor sums = opwright::new_empty(x, {rows, columns});
//     Tensor counts = opwright::new_empty(x, {rows}, opwright::ScalarType::Long);
//
// They have the sizes, strides, dtype and device of torch.empty_like(x) and x.new_empty(sizes). What their memory holds
// is undefined, also in PyTorch's deterministic mode: write every element. `opwright check` fills the memory, so that
// an element that was not written is visible.
#pragma once

#include <opwright/check.h>
#include <opwright/torch_error.h>
#include <opwright/types.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// Whether PyTorch allocates, which fills new tensors in its deterministic mode.
inline std::atomic<bool> fills_new_tensors{false};

using Sizes = HeaderOnlyArrayRef<std::int64_t>;

inline Tensor allocate(Sizes sizes, const std::int64_t* strides, std::int32_t dtype, const Tensor& like) {
    std::int32_t type = 0;
    std::int32_t index = 0;
    AtenTensorHandle tensor = nullptr;
    if (aoti_torch_get_device_type(like.get(), &type) != AOTI_TORCH_SUCCESS ||
        aoti_torch_get_device_index(like.get(), &index) != AOTI_TORCH_SUCCESS ||
        aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()), sizes.data(), strides, dtype, type, index,
                                 &tensor) != AOTI_TORCH_SUCCESS) [[unlikely]] {
        fail("cannot allocate a tensor of shape ", sizes, ": ", last_torch_error());
    }
    return Tensor(tensor);
}

inline std::int32_t dtype_code(const Tensor& tensor) {
    std::int32_t code = 0;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &code));
    return code;
}

// Writes row-major strides, as PyTorch computes them: as if an empty dimension had one element.
inline void write_strides(Sizes sizes, std::int64_t* strides) {
    std::int64_t stride = 1;
    for (std::size_t d = sizes.size(); d-- > 0;) {
        const std::int64_t size = sizes[d];
        OPWRIGHT_CHECK(size >= 0, "a new tensor's sizes must not be negative, got ", std::to_string(size),
                       " for dimension ", d, " of ", sizes.size());
        strides[d] = stride;
        OPWRIGHT_CHECK(!__builtin_mul_overflow(stride, size > 0 ? size : 1, &stride), "a new tensor of shape ", sizes,
                       " would have more elements than an int64 counts");
    }
}

}  // namespace detail

// A new tensor with the sizes, dtype and device of `tensor`, and the strides that torch.empty_like gives it: those of
// `tensor` if its elements lie without gaps, else row-major in the order of its strides.
//
// Throws std::runtime_error if there is not enough memory.
inline Tensor empty_like(const Tensor& tensor) {
    // An empty tensor counts as contiguous, whatever its strides are.
    const bool is_row_major = tensor.is_contiguous() && tensor.numel() > 0;
    if (!is_row_major || detail::fills_new_tensors.load(std::memory_order_relaxed)) [[unlikely]] {
        return torch::stable::empty_like(tensor);
    }
    return detail::allocate(tensor.sizes(), tensor.strides().data(), detail::dtype_code(tensor), tensor);
}

// A new row-major tensor of these sizes on the device of `like`, with its dtype or the one that is named.
//
// Throws std::runtime_error if a size is negative, or if there is not enough memory.
inline Tensor new_empty(const Tensor& like, HeaderOnlyArrayRef<std::int64_t> sizes,
                        std::optional<ScalarType> dtype = std::nullopt) {
    constexpr std::size_t usual_rank = 8;
    std::array<std::int64_t, usual_rank> usual;
    std::vector<std::int64_t> many(sizes.size() > usual_rank ? sizes.size() : 0);
    std::int64_t* strides = many.empty() ? usual.data() : many.data();
    detail::write_strides(sizes, strides);
    if (detail::fills_new_tensors.load(std::memory_order_relaxed)) [[unlikely]] {
        return torch::stable::new_empty(like, sizes, dtype);
    }
    const std::int32_t code =
        dtype ? torch::stable::detail::to<std::int32_t>(torch::stable::detail::from(*dtype)) : detail::dtype_code(like);
    return detail::allocate(sizes, strides, code, like);
}

}  // namespace opwright OPWRIGHT_HIDDEN

// For `opwright check`: while this is on, new tensors are filled as PyTorch's deterministic mode fills its own. Returns
// whether it was on before.
extern "C" __attribute__((weak, visibility("default"))) bool opwright_fill_new_tensors(bool on) {
    return opwright::detail::fills_new_tensors.exchange(on, std::memory_order_relaxed);
}

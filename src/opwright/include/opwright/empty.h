// Allocates new tensors for results without going through PyTorch's dispatcher.
//
//     Tensor result = opwright::empty_like(x);
//     Tensor sums = opwright::new_empty(x, {rows, columns});
//     Tensor counts = opwright::new_empty(x, {rows}, opwright::ScalarType::Long);
//
// The sizes, strides, dtype and device are those of torch.empty_like(x) and x.new_empty(sizes). The contents are
// undefined, even in PyTorch's deterministic mode: write every element. `opwright check` fills the memory, so that an
// element that was never written is visible.
#pragma once

#include <opwright/check.h>
#include <opwright/common.h>
#include <opwright/types.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <optional>

namespace opwright OPWRIGHT_HIDDEN {

// A new tensor with the sizes, dtype and device of `tensor` and the strides of torch.empty_like(tensor): those of
// `tensor` if it is non-overlapping and dense, otherwise dense strides in the same order.
//
// Throws std::runtime_error if there is not enough memory.
OPWRIGHT_COMMON Tensor empty_like(const Tensor& tensor);

// A new row-major tensor of the given sizes on the device of `like`, with `dtype` or, by default, the dtype of `like`.
//
// Throws std::runtime_error if a size is negative, or if there is not enough memory.
OPWRIGHT_COMMON Tensor new_empty(const Tensor& like, HeaderOnlyArrayRef<std::int64_t> sizes,
                                 std::optional<ScalarType> dtype = std::nullopt);

}  // namespace opwright OPWRIGHT_HIDDEN

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/common/empty.inc>
#endif

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
#include <opwright/common.h>
#include <opwright/types.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <optional>

namespace opwright OPWRIGHT_HIDDEN {

// A new tensor with the sizes, dtype and device of `tensor`, and the strides that torch.empty_like gives it: those of
// `tensor` if its elements lie without gaps, else row-major in the order of its strides.
//
// Throws std::runtime_error if there is not enough memory.
OPWRIGHT_COMMON Tensor empty_like(const Tensor& tensor);

// A new row-major tensor of these sizes on the device of `like`, with its dtype or the one that is named.
//
// Throws std::runtime_error if a size is negative, or if there is not enough memory.
OPWRIGHT_COMMON Tensor new_empty(const Tensor& like, HeaderOnlyArrayRef<std::int64_t> sizes,
                                 std::optional<ScalarType> dtype = std::nullopt);

}  // namespace opwright OPWRIGHT_HIDDEN

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/common/empty.inc>
#endif

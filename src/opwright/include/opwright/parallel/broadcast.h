// Tensors of different shapes and strides as rows that lie side by side.
#pragma once

#include <opwright/common.h>
#include <opwright/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// How many tensors a loop takes at most.
inline constexpr std::size_t most_tensors = 16;

using Tensors = HeaderOnlyArrayRef<const Tensor*>;

// Tensors of one shape, together with broadcasting: rows of `row_size` elements, of which each tensor has them side by
// side (step 1) or all in one (step 0).
struct Rows {
    std::int64_t row_size = 1;
    std::int64_t rows = 1;
    std::array<std::int64_t, most_tensors> step{};
    // What the rows are counted by, the outermost first. Few, because neighbours have been merged where they can.
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;  // those of the first tensor, then those of the next

    std::int64_t stride(std::size_t tensor, std::size_t d) const { return strides[tensor * sizes.size() + d]; }

    // Where a row begins.
    std::int64_t offset(std::size_t tensor, std::int64_t row) const {
        std::int64_t result = 0;
        for (std::size_t d = sizes.size(); d-- > 1; row /= sizes[d]) result += row % sizes[d] * stride(tensor, d);
        return sizes.empty() ? 0 : result + row * stride(tensor, 0);
    }
};

// The shape of all tensors together, as torch.broadcast_tensors has it.
//
// Throws std::runtime_error if there is none.
OPWRIGHT_COMMON std::vector<std::int64_t> broadcast_sizes(const char* caller, Tensors tensors);

// The tensors; in place of those whose elements do not lie side by side along their last dimension, row-major copies.
OPWRIGHT_COMMON std::vector<Tensor> with_dense_rows(Tensors tensors);

// The rows of tensors that are broadcast to `shape`. They are as long as they can be, or as long as the last dimension
// if it is kept.
OPWRIGHT_COMMON Rows rows_of(const std::vector<Tensor>& tensors, const std::vector<std::int64_t>& shape,
                             bool last_is_kept = false);

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/common/broadcast.inc>
#endif

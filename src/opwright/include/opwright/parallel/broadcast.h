// Views tensors of different shapes and strides as contiguous rows.
#pragma once

#include <opwright/common.h>
#include <opwright/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// The largest number of tensors that a loop accepts.
inline constexpr std::size_t most_tensors = 16;

using Tensors = HeaderOnlyArrayRef<const Tensor*>;

// Tensors broadcast to one shape, as rows of `row_size` elements. In each tensor, the elements of a row are adjacent
// (step 1) or all the same element (step 0).
struct Rows {
    std::int64_t row_size = 1;
    std::int64_t rows = 1;
    std::array<std::int64_t, most_tensors> step{};
    // The dimensions that count the rows, outermost first. Adjacent dimensions are merged where possible.
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;  // those of the first tensor, then of the second, ...

    std::int64_t stride(std::size_t tensor, std::size_t d) const { return strides[tensor * sizes.size() + d]; }

    // The offset of a row's first element.
    std::int64_t offset(std::size_t tensor, std::int64_t row) const {
        std::int64_t result = 0;
        for (std::size_t d = sizes.size(); d-- > 1; row /= sizes[d]) result += row % sizes[d] * stride(tensor, d);
        return sizes.empty() ? 0 : result + row * stride(tensor, 0);
    }
};

// The shape that torch.broadcast_tensors gives the tensors.
//
// Throws std::runtime_error if the shapes do not broadcast.
OPWRIGHT_COMMON std::vector<std::int64_t> broadcast_sizes(const char* caller, Tensors tensors);

// Returns the tensors, with row-major copies of those whose elements are not adjacent along the last dimension.
OPWRIGHT_COMMON std::vector<Tensor> with_dense_rows(Tensors tensors);

// The rows of tensors that are broadcast to `shape`: as long as possible or, if `last_is_kept`, as long as the last
// dimension.
OPWRIGHT_COMMON Rows rows_of(const std::vector<Tensor>& tensors, const std::vector<std::int64_t>& shape,
                             bool last_is_kept = false);

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/common/broadcast.inc>
#endif

// Tensors of different shapes and strides as rows that lie side by side.
#pragma once

#include <opwright/check.h>
#include <opwright/types.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// The shape of all tensors together, as torch.broadcast_tensors has it.
template <std::size_t count>
std::vector<std::int64_t> broadcast_sizes(const char* caller, const std::array<const Tensor*, count>& tensors) {
    std::size_t rank = 0;
    for (const Tensor* tensor : tensors) rank = std::max(rank, static_cast<std::size_t>(tensor->dim()));
    std::vector<std::int64_t> result(rank, 1);
    for (const Tensor* tensor : tensors) {
        const auto sizes = tensor->sizes();
        for (std::size_t d = 0; d < sizes.size(); ++d) {
            std::int64_t& size = result[rank - sizes.size() + d];
            if (size == 1) size = sizes[d];
            OPWRIGHT_CHECK(sizes[d] == size || sizes[d] == 1, caller,
                           " takes tensors whose shapes broadcast, got a dimension of ", size, " and one of ", sizes[d],
                           ": shape ", sizes);
        }
    }
    return result;
}

// `count` tensors of one shape, together with broadcasting: rows of `row_size` elements, of which each tensor has them
// side by side (step 1) or all in one (step 0).
template <std::size_t count>
struct Rows {
    std::int64_t row_size = 1;
    std::int64_t rows = 1;
    std::array<std::int64_t, count> step{};
    // What the rows are counted by, the outermost first. Few, because neighbours have been merged where they can.
    std::vector<std::int64_t> sizes;
    std::array<std::vector<std::int64_t>, count> strides;

    // Where a row begins.
    std::int64_t offset(std::size_t tensor, std::int64_t row) const {
        std::int64_t result = 0;
        for (std::size_t d = sizes.size(); d-- > 1; row /= sizes[d]) result += row % sizes[d] * strides[tensor][d];
        return sizes.empty() ? 0 : result + row * strides[tensor][0];
    }
};

// The stride of a tensor in each dimension of the shape that it is broadcast to.
inline std::vector<std::int64_t> strides_in(const Tensor& tensor, const std::vector<std::int64_t>& shape) {
    std::vector<std::int64_t> result(shape.size(), 0);
    const auto sizes = tensor.sizes();
    const auto strides = tensor.strides();
    const std::size_t added = shape.size() - sizes.size();
    for (std::size_t d = 0; d < sizes.size(); ++d) result[added + d] = sizes[d] == 1 ? 0 : strides[d];
    return result;
}

// The tensors; in place of those whose elements do not lie side by side along their last dimension, row-major copies.
template <std::size_t count>
std::array<Tensor, count> with_dense_rows(const std::array<const Tensor*, count>& tensors) {
    std::array<Tensor, count> result;
    for (std::size_t t = 0; t < count; ++t) {
        const auto sizes = tensors[t]->sizes();
        const auto strides = tensors[t]->strides();
        std::size_t d = sizes.size();
        while (d > 0 && sizes[d - 1] == 1) --d;
        const bool is_dense = d == 0 || strides[d - 1] == 0 || strides[d - 1] == 1;
        result[t] = is_dense ? *tensors[t] : torch::stable::contiguous(*tensors[t]);
    }
    return result;
}

// The rows of tensors that are broadcast to `shape`, and have been through with_dense_rows. They are as long as they
// can be, or as long as the last dimension if it is kept.
template <std::size_t count>
Rows<count> rows_of(const std::array<Tensor, count>& tensors, const std::vector<std::int64_t>& shape,
                    bool last_is_kept = false) {
    Rows<count> result;
    std::array<std::vector<std::int64_t>, count> strides;
    for (std::size_t t = 0; t < count; ++t) strides[t] = strides_in(tensors[t], shape);
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const bool is_kept = last_is_kept && d + 1 == shape.size();
        if (shape[d] == 1 && !is_kept) continue;
        bool is_merged = !result.sizes.empty() && !is_kept;
        for (std::size_t t = 0; t < count; ++t) {
            is_merged = is_merged && result.strides[t].back() == strides[t][d] * shape[d];
        }
        if (is_merged) {
            result.sizes.back() *= shape[d];
        } else {
            result.sizes.push_back(shape[d]);
        }
        for (std::size_t t = 0; t < count; ++t) {
            if (is_merged) result.strides[t].pop_back();
            result.strides[t].push_back(strides[t][d]);
        }
    }
    if (result.sizes.empty()) return result;  // one element
    result.row_size = result.sizes.back();
    result.sizes.pop_back();
    for (std::size_t t = 0; t < count; ++t) {
        result.step[t] = result.strides[t].back();
        result.strides[t].pop_back();
    }
    for (const std::int64_t size : result.sizes) result.rows *= size;
    return result;
}

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

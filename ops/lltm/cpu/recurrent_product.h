// The product that each step of a sequence takes with the same matrix.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <type_traits>

#include "matrix.h"
#include "numbers.h"
#include "small_product.h"

namespace lltm {

// Rows of row-major tensors, `batch` of them at a time, times `right`.
template <class T>
class RecurrentProduct {
  public:
    RecurrentProduct(const Tensor& right, int64_t batch)
        : right_(right), batch_(batch), depth_(right.size(0)), width_(right.size(1)), is_small_(fits(right, batch)) {
        if (is_small_ && right.stride(1) != 1) right_ = torch::stable::contiguous(right);
    }

    // Rows of `into` from `into_row` on = rows of `left` from `left_row` on, times the matrix; or += with `adds`.
    void operator()(Tensor& into, int64_t into_row, const Tensor& left, int64_t left_row, bool adds) const {
        if constexpr (has_small) {
            if (is_small_) {
                const SmallProduct<T> job{.left = numbers_of<T>(left) + left_row * depth_,
                                          .right = numbers_of<T>(right_),
                                          .into = memory_of<T>(into) + into_row * width_,
                                          .left_stride = depth_,
                                          .right_stride = right_.stride(0),
                                          .into_stride = width_,
                                          .rows = batch_,
                                          .depth = depth_,
                                          .adds = adds};
                in_parallel_blocks(job, width_, 3 * lanes_of(instruction_set(), sizeof(T)),
                                   work_of_products(batch_ * depth_));
                return;
            }
        }
        const Tensor target = rows(into, into_row, batch_, width_);
        const Tensor factor = rows(left, left_row, batch_, depth_);
        adds ? add_product(target, factor, right_) : multiply(target, factor, right_);
    }

  private:
    static constexpr bool has_small = !std::is_same_v<T, BFloat16>;

    // Where the matrix stays in a cache of its own from step to step, and the batch is small: measured, docs/lltm.md.
    static bool fits(const Tensor& right, int64_t batch) {
        return has_small && batch <= 64 && right.numel() * static_cast<int64_t>(sizeof(T)) <= 1 << 20;
    }

    Tensor right_;
    int64_t batch_;
    int64_t depth_;
    int64_t width_;
    bool is_small_;
};

}  // namespace lltm

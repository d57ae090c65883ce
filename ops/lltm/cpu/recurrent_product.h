// The product of each step of a sequence with the same matrix.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <type_traits>

#include "matrix.h"
#include "numbers.h"
#include "small_product.h"

namespace lltm {

// into += left right, for `batch` rows of row-major tensors at a time.
template <class T>
class RecurrentProduct {
  public:
    RecurrentProduct(const Tensor& right, const Sizes& sizes)
        : right_(right),
          batch_(sizes.batch),
          depth_(right.size(0)),
          width_(right.size(1)),
          is_small_(is_small(right, sizes)) {
        // Copied once for all steps: a library would copy it in each.
        if (is_small_) right_ = row_major(right);
    }

    // Adds the product of the rows of `left` from `left_row` on to the rows of `into` from `into_row` on.
    void add(Tensor& into, int64_t into_row, const Tensor& left, int64_t left_row) const {
        if constexpr (has_small) {
            // opwright: equivalent [;]: only the speed depends on it
            if (is_small_) {
                const SmallProduct<T> job{.left = numbers_of<T>(left) + left_row * depth_,
                                          .right = numbers_of<T>(right_),
                                          .into = memory_of<T>(into) + into_row * width_,
                                          .left_stride = depth_,
                                          .right_stride = width_,
                                          .into_stride = width_,
                                          .rows = batch_,
                                          .depth = depth_,
                                          .adds = true};
                const int64_t block =
                    3 * lanes_of(instruction_set(), sizeof(T));          // opwright: equivalent: only the speed
                const int64_t each = work_of_products(batch_ * depth_);  // opwright: equivalent: only the speed
                in_parallel_blocks(job, width_, block, each);
                return;
            }
        }
        add_product(rows(into, into_row, batch_, width_), rows(left, left_row, batch_, depth_), right_);
    }

  private:
    static constexpr bool has_small = !std::is_same_v<T, BFloat16>;

    // Whether the matrix stays in a cache from step to step, the batch is small, and there are enough steps to pay for
    // the copy: measured, docs/lltm.md.
    static bool is_small(const Tensor& right, const Sizes& sizes) {
        const int64_t most_rows = 2 * lanes_of(instruction_set(), sizeof(T));   // opwright: equivalent: only the speed
        const int64_t bytes = right.numel() * static_cast<int64_t>(sizeof(T));  // opwright: equivalent: only the speed
        // opwright: equivalent: only the speed depends on it
        return has_small && sizes.batch <= most_rows && sizes.steps >= 24 && bytes <= 1 << 20;
    }

    Tensor right_;
    int64_t batch_;
    int64_t depth_;
    int64_t width_;
    bool is_small_;
};

}  // namespace lltm

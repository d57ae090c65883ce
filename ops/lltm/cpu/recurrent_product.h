// The product of each step of a sequence with the same matrix.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <optional>
#include <type_traits>

#include "bfloat16_product.h"
#include "lanes.h"
#include "matrix.h"
#include "numbers.h"
#include "small_product.h"

namespace lltm {

// left right, for `batch` rows of row-major tensors at a time.
template <class T>
class RecurrentProduct {
  public:
    RecurrentProduct(const Tensor& right, const Sizes& sizes)
        : batch_(sizes.batch), depth_(right.size(0)), width_(right.size(1)), way_(way_of(right, sizes)) {
        // Copied once for all steps: a library would copy it in each step.
        if (way_ == Way::library) right_ = factor(right);
        if (way_ == Way::vectors) right_ = row_major(widened(right));
        if (way_ == Way::pairs) pairs_.emplace({transposed(right)});
    }

    // Writes the product of the rows of `left` from `left_row` on to the rows of `into` from `into_row` on.
    void write(Tensor& into, int64_t into_row, const Tensor& left, int64_t left_row) const {
        multiply_rows(into, into_row, left, left_row, false);
    }

    // The same, added to the existing values.
    void add(Tensor& into, int64_t into_row, const Tensor& left, int64_t left_row) const {
        multiply_rows(into, into_row, left, left_row, true);
    }

  private:
    enum class Way { library, vectors, pairs };
    static constexpr bool has_pairs = std::is_same_v<T, BFloat16> && has_paired_product;

    // The library does not keep a matrix in a cache from step to step. A copy pays off if the batch is small and there
    // are enough steps: measured, docs/explanation/lltm.md.
    static Way way_of(const Tensor& right, const Sizes& sizes) {
        const bool in_pairs = has_pairs && multiplies_bfloat16() && right.size(0) % 2 == 0;
        // opwright: equivalent [*]: only the speed and rounding depend on it
        const int64_t most_rows = in_pairs ? 48 : 2 * lanes_of(simd::instruction_set(), sizeof(Wide<T>));
        // opwright: equivalent [*]: the same
        const int64_t most_bytes = in_pairs ? 1 << 21 : 1 << 20;
        // opwright: equivalent: the same
        const int64_t bytes = right.numel() * static_cast<int64_t>(in_pairs ? sizeof(T) : sizeof(Wide<T>));
        // opwright: equivalent [;]: the same
        if (sizes.batch > most_rows || sizes.steps < 24 || bytes > most_bytes) return Way::library;
        return in_pairs ? Way::pairs : Way::vectors;
    }

    void multiply_rows(Tensor& into, int64_t into_row, const Tensor& left, int64_t left_row, bool adds) const {
        // opwright: equivalent [;]: only the speed and rounding depend on it
        if (way_ == Way::library) {
            const Tensor to = rows(into, into_row, batch_, width_), from = rows(left, left_row, batch_, depth_);
            return adds ? add_product(to, from, right_) : multiply(to, from, right_);
        }
        const T* from = numbers_of<T>(left) + left_row * depth_;
        T* to = memory_of<T>(into) + into_row * width_;
        // opwright: equivalent [*]: only the speed depends on it
        const int64_t block = 3 * lanes_of(simd::instruction_set(), sizeof(Wide<T>));
        const int64_t each = work_of_products(batch_ * depth_);  // opwright: equivalent: only the speed
        if constexpr (has_pairs) {
            if (way_ == Way::pairs) {
                const PairedProduct<T> job{.left = from,
                                           .right = pairs_->numbers(),
                                           .into = to,
                                           .left_stride = depth_,
                                           .right_stride = pairs_->stride(),
                                           .into_stride = width_,
                                           .rows = batch_,
                                           .pairs = depth_ / 2,
                                           .adds = adds};
                in_parallel_blocks(job, width_, block, each / 2);  // opwright: equivalent [/]: only the speed
                return;
            }
        }
        const SmallProduct<T> job{.left = from,
                                  .right = numbers_of<Wide<T>>(right_),
                                  .into = to,
                                  .left_stride = depth_,
                                  .right_stride = width_,
                                  .into_stride = width_,
                                  .rows = batch_,
                                  .depth = depth_,
                                  .adds = adds};
        in_parallel_blocks(job, width_, block, each);
    }

    int64_t batch_;
    int64_t depth_;
    int64_t width_;
    Way way_;
    Tensor right_;
    std::optional<Lanes<float>> pairs_;
};

}  // namespace lltm

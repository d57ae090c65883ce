// Matrices laid out for vectors whose lanes are rows.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>

#include "numbers.h"
#include "small_step.h"

namespace lltm {

// The transpose of matrices next to each other, padded with zeros to a whole vector. If T is float32, pairs of adjacent
// bfloat16 numbers stay together: the matrices must have an even number of columns.
template <class T>
class Lanes {
  public:
    explicit Lanes(std::initializer_list<Tensor> parts) {
        int64_t columns = 0;
        for (const Tensor& part : parts) columns += columns_of(part);
        // opwright: equivalent [0]: one vector more than needed
        stride_ = (parts.begin()->size(0) + widest - 1) / widest * widest;
        numbers_.reset(static_cast<T*>(::operator new(columns * stride_ * sizeof(T), std::align_val_t(alignment))));
        int64_t first = 0;
        for (const Tensor& part : parts) {
            take(part, first);
            first += columns_of(part);
        }
    }

    const T* numbers() const { return numbers_.get(); }
    int64_t stride() const { return stride_; }

  private:
    static constexpr std::size_t alignment = 64;
    static constexpr int64_t widest = alignment / sizeof(T);
    struct Free {
        void operator()(T* numbers) const { ::operator delete(numbers, std::align_val_t(alignment)); }
    };

    static int64_t columns_of(const Tensor& part) {
        return part.size(1) * static_cast<int64_t>(part.element_size()) / static_cast<int64_t>(sizeof(T));
    }

    void take(const Tensor& part, int64_t first) {
        const Tensor dense = row_major(part);
        const int64_t columns = columns_of(part);
        const Turn<T> job{numbers_of<T>(dense), numbers_.get() + first * stride_, columns, stride_, part.size(0)};
        // opwright: equivalent [*]: only the speed depends on it
        const int64_t each = part.size(0) / 8, block = 4;
        in_parallel_blocks(job, columns, block, each);
    }

    int64_t stride_;
    std::unique_ptr<T, Free> numbers_;
};

}  // namespace lltm

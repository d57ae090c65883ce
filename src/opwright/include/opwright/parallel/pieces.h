// A loop over the elements of tensors, in pieces of at least one vector.
#pragma once

#include <opwright/common.h>
#include <opwright/parallel/operands.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// A piece lies in one row, where the elements are side by side. Where fewer than a vector's are left, and in short
// rows, the elements are copied together with those of the next rows, and at the end of the loop with zeros.
//
// Nothing here depends on the formula of a loop or on the instructions of its vectors, so that it is compiled once, and
// not in each loop.
class Pieces {
  public:
    // How many bytes of a tensor are copied together: a multiple of the size of any vector.
    static constexpr std::size_t most_copied = 1024;
    // For each tensor.
    struct alignas(64) Copies {
        unsigned char bytes[most_copied];
    };

    // The elements from `begin` to `end`, counted over all rows. `copies` has as many as there are tensors.
    Pieces(const Operands& operands, std::size_t tensors, std::size_t results, std::size_t element_size,
           std::int64_t lanes, std::int64_t begin, std::int64_t end, Copies* copies)
        : operands_(operands),
          tensors_(tensors),
          results_(results),
          element_size_(element_size),
          lanes_(lanes),
          has_short_rows_(operands.rows.rows > 1 && operands.rows.row_size < 2 * lanes),
          begin_(begin),
          end_(end),
          row_(begin == end ? 0 : begin / operands.rows.row_size),  // without elements, rows may have none either
          at_(begin - row_ * operands.rows.row_size),
          copies_(copies) {}

    // Goes to the next piece. Returns false if there is none.
    OPWRIGHT_COMMON bool next();

    // How many elements the piece has, at least a vector's.
    std::int64_t size() const { return size_; }

    // The elements of a tensor. If `moves` is 0, it is one element, of which each lane has a copy; else `moves` is -1,
    // a mask.
    template <class T>
    const T* source(std::size_t tensor) const {
        return static_cast<const T*>(from_[tensor]);
    }
    std::int64_t moves(std::size_t tensor) const { return moves_[tensor]; }

    // The elements of a result; null if it is not wanted.
    template <class T>
    T* result(std::size_t result) const {
        return static_cast<T*>(into_[result]);
    }

  private:
    struct alignas(64) Vector {
        unsigned char bytes[64];
    };

    OPWRIGHT_COMMON void point_into_row();
    OPWRIGHT_COMMON void copy_together(std::int64_t count);
    OPWRIGHT_COMMON void fill(unsigned char* to, const unsigned char* element, std::int64_t count) const;
    OPWRIGHT_COMMON const unsigned char* row_of(std::size_t tensor) const;
    OPWRIGHT_COMMON void advance(std::int64_t count);
    OPWRIGHT_COMMON void copy_padded_results() const;

    std::size_t bytes_of(std::int64_t count) const { return static_cast<std::size_t>(count) * element_size_; }

    const Operands& operands_;
    std::size_t tensors_, results_, element_size_;
    std::int64_t lanes_;  // a power of two
    bool has_short_rows_;
    std::int64_t begin_, end_;
    std::int64_t row_, at_;  // where the next piece begins
    std::int64_t size_ = 0;
    std::int64_t padded_ = 0;  // how many elements of the last piece are not zeros
    Copies* copies_;
    std::array<const void*, most_tensors> from_;
    std::array<std::int64_t, most_tensors> moves_;
    std::array<void*, most_tensors> into_;
    std::array<Vector, most_tensors> padded_results_;
};

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/common/pieces.inc>
#endif

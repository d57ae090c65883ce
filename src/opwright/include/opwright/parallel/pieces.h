// Splits a loop over the elements of tensors into pieces of at least one vector.
#pragma once

#include <opwright/common.h>
#include <opwright/parallel/operands.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// A piece is part of one row, where the elements are adjacent. If less than a vector is left, and in short rows, the
// elements are copied together with those of the next rows, and with zeros at the end of the loop.
//
// Nothing here depends on a loop's formula or on its vectors' instruction set, so that it is compiled once and not for
// each loop.
class Pieces {
  public:
    // The maximum size in bytes of a copy: a multiple of every vector size.
    static constexpr std::size_t most_copied = 1024;
    // For each tensor.
    struct alignas(64) Copies {
        unsigned char bytes[most_copied];
    };

    // Covers the elements from `begin` to `end`, counted over all rows. `copies` has one entry per tensor.
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
          row_(begin == end ? 0 : begin / operands.rows.row_size),  // without elements, rows may be empty too
          at_(begin - row_ * operands.rows.row_size),
          copies_(copies) {}

    // Advances to the next piece. Returns false at the end.
    OPWRIGHT_COMMON bool next();

    // The number of elements in the piece; at least one vector.
    std::int64_t size() const { return size_; }

    // The elements of a tensor. `moves` is a mask: -1, or 0 if there is only one element, which each lane has a copy
    // of.
    template <class T>
    const T* source(std::size_t tensor) const {
        return static_cast<const T*>(from_[tensor]);
    }
    std::int64_t moves(std::size_t tensor) const { return moves_[tensor]; }

    // The elements of a result; null if the result is not wanted.
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
    std::int64_t row_, at_;  // where the next piece starts
    std::int64_t size_ = 0;
    std::int64_t padded_ = 0;  // the number of elements of the last piece that are not padding
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

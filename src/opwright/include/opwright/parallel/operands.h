// The inputs and outputs of a loop over the elements or rows of tensors.
#pragma once

#include <opwright/common.h>
#include <opwright/parallel/broadcast.h>
#include <opwright/types.h>

#include <array>
#include <cstddef>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

struct Operands {
    Rows rows;
    std::vector<Tensor> dense;  // owns what `from` points to, unless the arguments own it
    std::array<const void*, most_tensors> from{};
    std::array<void*, most_tensors> into{};  // null for results that are not wanted

    // Typed pointers to the first `count` tensors.
    template <class T, std::size_t count>
    std::array<const T*, count> sources() const {
        std::array<const T*, count> typed;
        for (std::size_t t = 0; t < count; ++t) typed[t] = static_cast<const T*>(from[t]);
        return typed;
    }
    template <class T, std::size_t count>
    std::array<T*, count> results() const {
        std::array<T*, count> typed;
        for (std::size_t k = 0; k < count; ++k) typed[k] = static_cast<T*>(into[k]);
        return typed;
    }
};

// The dtype of the tensors, which must be on such a device and share one dtype.
//
// Throws std::runtime_error if they are not.
OPWRIGHT_COMMON ScalarType dtype_of_all(const char* caller, DeviceType device, Tensors tensors);

// The operands of a loop over elements. Allocates the wanted results, row-major, in the shape that the tensors
// broadcast to.
//
// Throws std::runtime_error if they do not broadcast, or if there is not enough memory.
OPWRIGHT_COMMON Operands elementwise_operands(Tensors tensors, HeaderOnlyArrayRef<bool> wanted, Tensor* made);

// The operands of a loop over rows, which produces a row for each row or, if it reduces, one number.
//
// Throws std::runtime_error as above, and if all tensors have zero dimensions.
OPWRIGHT_COMMON Operands row_operands(const char* caller, Tensors tensors, bool reduces, Tensor& made);

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/common/operands.inc>
#endif

// The types of numbers in memory, and what they are computed with.
#pragma once

#include <opwright/visibility.h>

#include <type_traits>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {

// Whether a T in memory is a bfloat16 or a float16. There are no vectors of them: they are loaded as float, and rounded
// when they are stored, to nearest with ties to even. opwright/parallel/dtypes.h says so of PyTorch's types.
template <class T>
inline constexpr bool is_bfloat16 = false;
template <class T>
inline constexpr bool is_half = false;

// The type to compute with, for a type in memory.
template <class T>
using Wide = std::conditional_t<is_bfloat16<T> || is_half<T>, float, T>;

}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

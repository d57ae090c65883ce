// The types of numbers in memory and the types they are computed in.
#pragma once

#include <opwright/visibility.h>

#include <type_traits>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {

// Whether a T in memory is a bfloat16 or a float16. They have no vectors of their own: they are loaded as float, and
// rounded to nearest, ties to even, when stored. opwright/parallel/dtypes.h sets these for PyTorch's types.
template <class T>
inline constexpr bool is_bfloat16 = false;
template <class T>
inline constexpr bool is_half = false;

// The type in which a type in memory is computed.
template <class T>
using Wide = std::conditional_t<is_bfloat16<T> || is_half<T>, float, T>;

}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

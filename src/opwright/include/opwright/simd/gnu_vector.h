// The compiler's vector types.
#pragma once

#include <opwright/visibility.h>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {
namespace detail {

template <class Element, int bytes>
struct Gnu {
    typedef Element Type __attribute__((vector_size(bytes)));
};
template <class Element, int bytes>
using GnuVector = typename Gnu<Element, bytes>::Type;

template <class V>
using element_of = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<V&>()[0])>>;

// The signed integer type of the same width as a number.
template <class Number>
using BitsOf = std::conditional_t<sizeof(Number) == 4, std::int32_t, std::int64_t>;

template <class V, int bytes>
inline constexpr int lanes_of = bytes / static_cast<int>(sizeof(element_of<V>));

// Operations that only some processors have an instruction for. Instructions<bytes> is defined for each width in its
// own header, with functions for vectors of float and of double. They pass and return vectors by reference: passed by
// value, vectors would use other registers in code compiled without the instruction set.
template <int bytes>
struct Instructions;

}  // namespace detail
}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

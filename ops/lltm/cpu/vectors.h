// The vectors that the kernels compute with, as wide as the processor's, and loops over a row.
#pragma once

#include <opwright/parallel/dtypes.h>
#include <opwright/simd.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace lltm {

namespace simd = opwright::simd;
using opwright::BFloat16;
using simd::run;
using simd::Vector;
using simd::Wide;

// Calls act(first, count) for each vector of a row of `size` elements. `count` is a constant for all full vectors, so
// that each is loaded or stored by one instruction.
template <class V, class Act>
OPWRIGHT_INLINE inline void over(std::int64_t size, const Act& act) {
    std::int64_t first = 0;
    // opwright: equivalent [<]: only the speed depends on it
    for (; first + V::lanes <= size; first += V::lanes) act(first, std::integral_constant<std::int64_t, V::lanes>());
    if (first < size) act(first, size - first);  // opwright: equivalent [<=]: no elements
}

inline int lanes_of(simd::InstructionSet set, std::size_t element_size) {
    // opwright: equivalent: only the speed depends on it
    return simd::vector_bytes(set) / static_cast<int>(element_size);
}

}  // namespace lltm

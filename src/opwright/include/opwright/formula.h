// What a formula needs that is compiled for vectors on the CPU and for single numbers on the GPU.
//
//     struct SwiGLU {
//         template <class V>
//         OPWRIGHT_INLINE V operator()(const V& gate, const V& value) const {
//             using opwright::sigmoid;  // of a number; a vector brings its own
//             return gate * sigmoid(gate) * value;
//         }
//     };
//
// exp, expm1, log, tanh, erf, sqrt, fma and others of one number are those of <cmath>.
#pragma once

#include <opwright/visibility.h>

#include <cmath>
#include <type_traits>

// For the functions and lambdas that loops call: before a function, and behind the parameters of a lambda. Code that
// is not inlined into the loop is correct but slow: it is compiled without the loop's instruction set.
//
//     template <class V>
//     OPWRIGHT_INLINE inline V silu(const V& x) { return x * sigmoid(x); }
//     [=](auto x) OPWRIGHT_INLINE { return factor * silu(x); }
#if defined(__CUDACC__)
#define OPWRIGHT_INLINE __attribute__((always_inline)) __host__ __device__
#else
#define OPWRIGHT_INLINE __attribute__((always_inline))
#endif

namespace opwright OPWRIGHT_HIDDEN {

// 1 / (1 + exp(-x))
template <class Number, std::enable_if_t<std::is_floating_point_v<Number>, int> = 0>
OPWRIGHT_INLINE inline Number sigmoid(Number x) {
    return 1 / (1 + std::exp(-x));
}

}  // namespace opwright OPWRIGHT_HIDDEN

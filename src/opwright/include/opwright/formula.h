// What a formula needs to compile for vectors on the CPU and for single numbers on the GPU.
//
//     struct SwiGLU {
//         template <class V>
//         OPWRIGHT_INLINE V operator()(const V& gate, const V& value) const {
//             using opwright::sigmoid;  // for a number; argument-dependent lookup finds a vector's
//             return gate * sigmoid(gate) * value;
//         }
//     };
//
// For single numbers, exp, expm1, log, tanh, erf, sqrt, fma and others come from <cmath>.
#pragma once

#include <opwright/visibility.h>

#include <cmath>
#include <type_traits>

// Marks the functions and lambdas that loops call: write it before a function, or after the parameters of a lambda.
// Code that is not inlined into the loop is correct but slow, because it is compiled without the loop's instruction
// set.
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

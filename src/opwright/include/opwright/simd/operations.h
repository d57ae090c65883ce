// What vectors are made of: one function for each operation and width.
//
// Each is compiled for the instructions of its width, because a compiler takes 64 bytes apart in a function that may
// not use them, before it inlines the function where it may.
#pragma once

#include <opwright/simd/avx2.h>
#include <opwright/simd/avx512.h>
#include <opwright/simd/baseline.h>
#include <opwright/simd/gnu_vector.h>
#include <opwright/simd/targets.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {
namespace detail {

template <int bytes>
struct Operations;

#define OPWRIGHT_SIMD_BYTES 16
#define OPWRIGHT_SIMD_TARGET
#include <opwright/simd/operations.inc>

#if defined(__x86_64__)
#define OPWRIGHT_SIMD_BYTES 32
#define OPWRIGHT_SIMD_TARGET OPWRIGHT_SIMD_AVX2
#include <opwright/simd/operations.inc>

#define OPWRIGHT_SIMD_BYTES 64
#define OPWRIGHT_SIMD_TARGET OPWRIGHT_SIMD_AVX512
#include <opwright/simd/operations.inc>
#endif

}  // namespace detail
}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

// The operations that vectors are built on: one function for each operation and width.
//
// Each is compiled for the instruction set of its width. Otherwise the compiler splits 64-byte vectors before it
// inlines the function into one that may use the wider instructions.
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

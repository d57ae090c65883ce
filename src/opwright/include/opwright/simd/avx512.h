// The instructions of AVX-512.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>
#include <opwright/simd/gnu_vector.h>
#include <opwright/simd/targets.h>

#include <cstdint>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {
namespace detail {

// Uses the masked form with all bits set where there is a choice: the unmasked form has an uninitialized operand, which
// compilers warn about.
template <>
struct Instructions<64> {
    using Floats = GnuVector<float, 64>;
    using Doubles = GnuVector<double, 64>;
    using Halves = GnuVector<std::uint16_t, 32>;

    OPWRIGHT_SIMD_AVX512 static void lesser(Floats& into, const Floats& a, const Floats& b) {
        into = (Floats)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b);
    }
    OPWRIGHT_SIMD_AVX512 static void lesser(Doubles& into, const Doubles& a, const Doubles& b) {
        into = (Doubles)_mm512_maskz_min_pd(0xff, (__m512d)a, (__m512d)b);
    }

    OPWRIGHT_SIMD_AVX512 static void greater(Floats& into, const Floats& a, const Floats& b) {
        into = (Floats)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
    }
    OPWRIGHT_SIMD_AVX512 static void greater(Doubles& into, const Doubles& a, const Doubles& b) {
        into = (Doubles)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b);
    }

    OPWRIGHT_SIMD_AVX512 static void fma(Floats& into, const Floats& a, const Floats& b, const Floats& c) {
        into = (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
    }
    OPWRIGHT_SIMD_AVX512 static void fma(Doubles& into, const Doubles& a, const Doubles& b, const Doubles& c) {
        into = (Doubles)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
    }

    OPWRIGHT_SIMD_AVX512 static void sqrt(Floats& into, const Floats& a) {
        into = (Floats)_mm512_maskz_sqrt_ps(0xffff, (__m512)a);
    }
    OPWRIGHT_SIMD_AVX512 static void sqrt(Doubles& into, const Doubles& a) {
        into = (Doubles)_mm512_maskz_sqrt_pd(0xff, (__m512d)a);
    }

    OPWRIGHT_SIMD_AVX512 static void round(Floats& into, const Floats& a) {
        into = (Floats)_mm512_maskz_roundscale_ps(0xffff, (__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    OPWRIGHT_SIMD_AVX512 static void round(Doubles& into, const Doubles& a) {
        into = (Doubles)_mm512_maskz_roundscale_pd(0xff, (__m512d)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }

    OPWRIGHT_SIMD_AVX512 static void floor(Floats& into, const Floats& a) {
        into = (Floats)_mm512_maskz_roundscale_ps(0xffff, (__m512)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    }
    OPWRIGHT_SIMD_AVX512 static void floor(Doubles& into, const Doubles& a) {
        into = (Doubles)_mm512_maskz_roundscale_pd(0xff, (__m512d)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    }

    OPWRIGHT_SIMD_AVX512 static void trunc(Floats& into, const Floats& a) {
        into = (Floats)_mm512_maskz_roundscale_ps(0xffff, (__m512)a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    }
    OPWRIGHT_SIMD_AVX512 static void trunc(Doubles& into, const Doubles& a) {
        into = (Doubles)_mm512_maskz_roundscale_pd(0xff, (__m512d)a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    }

    // a * 2^n
    OPWRIGHT_SIMD_AVX512 static void scale(Floats& into, const Floats& a, const Floats& n) {
        into = (Floats)_mm512_maskz_scalef_ps(0xffff, (__m512)a, (__m512)n);
    }
    OPWRIGHT_SIMD_AVX512 static void scale(Doubles& into, const Doubles& a, const Doubles& n) {
        into = (Doubles)_mm512_maskz_scalef_pd(0xff, (__m512d)a, (__m512d)n);
    }

    OPWRIGHT_SIMD_AVX512 static void from_float16(Floats& into, const Halves& halves) {
        into = (Floats)_mm512_maskz_cvtph_ps(0xffff, (__m256i)halves);
    }
    OPWRIGHT_SIMD_AVX512 static void to_float16(Halves& into, const Floats& a) {
        into = (Halves)_mm512_maskz_cvtps_ph(0xffff, (__m512)a, _MM_FROUND_TO_NEAREST_INT);
    }

    OPWRIGHT_SIMD_AVX512 static void gather(Floats& into, const float* from, const GnuVector<std::int32_t, 64>& at) {
        into = (Floats)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, (__m512i)at, from, 4);
    }
    OPWRIGHT_SIMD_AVX512 static void gather(Doubles& into, const double* from, const GnuVector<std::int64_t, 64>& at) {
        into = (Doubles)_mm512_mask_i64gather_pd(_mm512_setzero_pd(), 0xff, (__m512i)at, from, 8);
    }

    // Loads the first `count` lanes, fewer than all: of a vector of 4-byte or 8-byte elements, or of the 2-byte
    // elements for a vector of floats.
    template <class V>
    OPWRIGHT_SIMD_AVX512 static void load_some(V& into, const void* from, std::int64_t count) {
        const unsigned lanes = (1u << count) - 1;
        if constexpr (sizeof(V) == 32) {
            into = (V)_mm256_maskz_loadu_epi16(static_cast<__mmask16>(lanes), from);
        } else if constexpr (sizeof(element_of<V>) == 4) {
            into = (V)_mm512_maskz_loadu_epi32(static_cast<__mmask16>(lanes), from);
        } else {
            into = (V)_mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes), from);
        }
    }
    template <class V>
    OPWRIGHT_SIMD_AVX512 static void store_some(void* into, const V& from, std::int64_t count) {
        const unsigned lanes = (1u << count) - 1;
        if constexpr (sizeof(V) == 32) {
            _mm256_mask_storeu_epi16(into, static_cast<__mmask16>(lanes), (__m256i)from);
        } else if constexpr (sizeof(element_of<V>) == 4) {
            _mm512_mask_storeu_epi32(into, static_cast<__mmask16>(lanes), (__m512i)from);
        } else {
            _mm512_mask_storeu_epi64(into, static_cast<__mmask8>(lanes), (__m512i)from);
        }
    }
};

}  // namespace detail
}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN
#endif

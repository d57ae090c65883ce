// The instructions of AVX2, FMA and F16C.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>
#include <opwright/simd/gnu_vector.h>
#include <opwright/simd/targets.h>

#include <cstdint>
#include <cstring>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {
namespace detail {

template <>
struct Instructions<32> {
    using Floats = GnuVector<float, 32>;
    using Doubles = GnuVector<double, 32>;
    using Halves = GnuVector<std::uint16_t, 16>;

    OPWRIGHT_SIMD_AVX2 static void lesser(Floats& into, const Floats& a, const Floats& b) {
        into = (Floats)_mm256_min_ps((__m256)a, (__m256)b);
    }
    OPWRIGHT_SIMD_AVX2 static void lesser(Doubles& into, const Doubles& a, const Doubles& b) {
        into = (Doubles)_mm256_min_pd((__m256d)a, (__m256d)b);
    }

    OPWRIGHT_SIMD_AVX2 static void greater(Floats& into, const Floats& a, const Floats& b) {
        into = (Floats)_mm256_max_ps((__m256)a, (__m256)b);
    }
    OPWRIGHT_SIMD_AVX2 static void greater(Doubles& into, const Doubles& a, const Doubles& b) {
        into = (Doubles)_mm256_max_pd((__m256d)a, (__m256d)b);
    }

    OPWRIGHT_SIMD_AVX2 static void fma(Floats& into, const Floats& a, const Floats& b, const Floats& c) {
        into = (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
    }
    OPWRIGHT_SIMD_AVX2 static void fma(Doubles& into, const Doubles& a, const Doubles& b, const Doubles& c) {
        into = (Doubles)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
    }

    OPWRIGHT_SIMD_AVX2 static void sqrt(Floats& into, const Floats& a) { into = (Floats)_mm256_sqrt_ps((__m256)a); }
    OPWRIGHT_SIMD_AVX2 static void sqrt(Doubles& into, const Doubles& a) { into = (Doubles)_mm256_sqrt_pd((__m256d)a); }

    OPWRIGHT_SIMD_AVX2 static void round(Floats& into, const Floats& a) {
        into = (Floats)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    OPWRIGHT_SIMD_AVX2 static void round(Doubles& into, const Doubles& a) {
        into = (Doubles)_mm256_round_pd((__m256d)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }

    OPWRIGHT_SIMD_AVX2 static void floor(Floats& into, const Floats& a) {
        into = (Floats)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    }
    OPWRIGHT_SIMD_AVX2 static void floor(Doubles& into, const Doubles& a) {
        into = (Doubles)_mm256_round_pd((__m256d)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    }

    OPWRIGHT_SIMD_AVX2 static void trunc(Floats& into, const Floats& a) {
        into = (Floats)_mm256_round_ps((__m256)a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    }
    OPWRIGHT_SIMD_AVX2 static void trunc(Doubles& into, const Doubles& a) {
        into = (Doubles)_mm256_round_pd((__m256d)a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    }

    OPWRIGHT_SIMD_AVX2 static void from_float16(Floats& into, const Halves& halves) {
        into = (Floats)_mm256_cvtph_ps((__m128i)halves);
    }
    OPWRIGHT_SIMD_AVX2 static void to_float16(Halves& into, const Floats& a) {
        into = (Halves)_mm256_cvtps_ph((__m256)a, _MM_FROUND_TO_NEAREST_INT);
    }

    OPWRIGHT_SIMD_AVX2 static void gather(Floats& into, const float* from, const GnuVector<std::int32_t, 32>& at) {
        into = (Floats)_mm256_i32gather_ps(from, (__m256i)at, 4);
    }
    OPWRIGHT_SIMD_AVX2 static void gather(Doubles& into, const double* from, const GnuVector<std::int64_t, 32>& at) {
        into = (Doubles)_mm256_i64gather_pd(from, (__m256i)at, 8);
    }

    template <class V>
    OPWRIGHT_SIMD_AVX2 static void load_some(V& into, const void* from, std::int64_t count) {
        if constexpr (sizeof(V) == 16) {
            V some{};
            std::memcpy(&some, from, count * 2);
            into = some;
        } else if constexpr (sizeof(element_of<V>) == 4) {
            into = (V)_mm256_maskload_epi32(static_cast<const int*>(from), (__m256i)first_lanes<V>(count));
        } else {
            into = (V)_mm256_maskload_epi64(static_cast<const long long*>(from), (__m256i)first_lanes<V>(count));
        }
    }
    template <class V>
    OPWRIGHT_SIMD_AVX2 static void store_some(void* into, const V& from, std::int64_t count) {
        if constexpr (sizeof(V) == 16) {
            std::memcpy(into, &from, count * 2);
        } else if constexpr (sizeof(element_of<V>) == 4) {
            _mm256_maskstore_epi32(static_cast<int*>(into), (__m256i)first_lanes<V>(count), (__m256i)from);
        } else {
            _mm256_maskstore_epi64(static_cast<long long*>(into), (__m256i)first_lanes<V>(count), (__m256i)from);
        }
    }

  private:
    template <class V>
    OPWRIGHT_SIMD_AVX2 static GnuVector<BitsOf<element_of<V>>, 32> first_lanes(std::int64_t count) {
        using Lane = BitsOf<element_of<V>>;
        GnuVector<Lane, 32> lane;
        for (int i = 0; i < lanes_of<V, 32>; ++i) lane[i] = i;
        return (GnuVector<Lane, 32>)(lane < static_cast<Lane>(count));
    }
};

}  // namespace detail
}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN
#endif

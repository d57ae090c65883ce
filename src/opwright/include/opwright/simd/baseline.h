// The baseline of every processor: SSE2 on x86, NEON on ARM, and compiled loops elsewhere.
#pragma once

#include <opwright/simd/float16.h>
#include <opwright/simd/gnu_vector.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {
namespace detail {

template <>
struct Instructions<16> {
    using Floats = GnuVector<float, 16>;
    using Doubles = GnuVector<double, 16>;
    using Halves = GnuVector<std::uint16_t, 8>;

#if defined(__x86_64__)
    static void lesser(Floats& into, const Floats& a, const Floats& b) {
        into = (Floats)_mm_min_ps((__m128)a, (__m128)b);
    }
    static void lesser(Doubles& into, const Doubles& a, const Doubles& b) {
        into = (Doubles)_mm_min_pd((__m128d)a, (__m128d)b);
    }
    static void greater(Floats& into, const Floats& a, const Floats& b) {
        into = (Floats)_mm_max_ps((__m128)a, (__m128)b);
    }
    static void greater(Doubles& into, const Doubles& a, const Doubles& b) {
        into = (Doubles)_mm_max_pd((__m128d)a, (__m128d)b);
    }
    static void sqrt(Floats& into, const Floats& a) { into = (Floats)_mm_sqrt_ps((__m128)a); }
    static void sqrt(Doubles& into, const Doubles& a) { into = (Doubles)_mm_sqrt_pd((__m128d)a); }
#else
    template <class V>
    static void lesser(V& into, const V& a, const V& b) {
        into = a < b ? a : b;
    }
    template <class V>
    static void greater(V& into, const V& a, const V& b) {
        into = a > b ? a : b;
    }
    template <class V>
    static void sqrt(V& into, const V& a) {
        for (int lane = 0; lane < lanes_of<V, 16>; ++lane) into[lane] = std::sqrt(a[lane]);
    }
#endif

#if defined(__aarch64__)
    static void fma(Floats& into, const Floats& a, const Floats& b, const Floats& c) {
        into = (Floats)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
    }
    static void fma(Doubles& into, const Doubles& a, const Doubles& b, const Doubles& c) {
        into = (Doubles)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
    }
#else
    template <class V>
    static void fma(V& into, const V& a, const V& b, const V& c) {
        into = a * b + c;
    }
#endif

    template <class V>
    static void round(V& into, const V& a) {
        for (int lane = 0; lane < lanes_of<V, 16>; ++lane) into[lane] = std::nearbyint(a[lane]);
    }
    template <class V>
    static void floor(V& into, const V& a) {
        for (int lane = 0; lane < lanes_of<V, 16>; ++lane) into[lane] = std::floor(a[lane]);
    }
    template <class V>
    static void trunc(V& into, const V& a) {
        for (int lane = 0; lane < lanes_of<V, 16>; ++lane) into[lane] = std::trunc(a[lane]);
    }

    static void from_float16(Floats& into, const Halves& halves) {
        for (int lane = 0; lane < 4; ++lane) into[lane] = half_to_float(halves[lane]);
    }
    static void to_float16(Halves& into, const Floats& a) {
        for (int lane = 0; lane < 4; ++lane) into[lane] = float_to_half(a[lane]);
    }

    template <class V, class Integers>
    static void gather(V& into, const element_of<V>* from, const Integers& at) {
        for (int lane = 0; lane < lanes_of<V, 16>; ++lane) into[lane] = from[at[lane]];
    }

    template <class V>
    static void load_some(V& into, const void* from, std::int64_t count) {
        V some{};
        std::memcpy(&some, from, count * sizeof(element_of<V>));
        into = some;
    }
    template <class V>
    static void store_some(void* into, const V& from, std::int64_t count) {
        std::memcpy(into, &from, count * sizeof(element_of<V>));
    }
};

}  // namespace detail
}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

// Functions of vectors. NaN, infinities, signed zeros and subnormal numbers behave as in <cmath>.
//
//             largest error in units in the last place (ULP), for float and double
//   exp       1.1
//   expm1     1.6
//   log       0.8
//   sigmoid   2.4
//   tanh      2.6
//   erf       2.4
//   sqrt      0.5, in vector.h
//
// A baseline without fma adds 0.5. tests/integration/vectors/test_functions.py checks this for all exponents.
#pragma once

#include <opwright/simd/coefficients.h>
#include <opwright/simd/vector.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {
namespace detail {

template <class Number>
struct Constants {
    static constexpr bool is_float = std::is_same_v<Number, float>;
    static constexpr int mantissa_bits = is_float ? 23 : 52;
    static constexpr BitsOf<Number> bias = is_float ? 127 : 1023;
    // Adding it to a number leaves the nearest integer in the lowest bits.
    static constexpr Number whole = is_float ? Number(0x1.8p23) : Number(0x1.8p52);
    static constexpr Number log2_e = Number(1.44269504088896340736);
    // log(2) in two parts. The first ends in zeros, so that its product with an integer is exact (Cody and Waite,
    // "Software Manual for the Elementary Functions", 1980).
    static constexpr Number ln2_high = is_float ? Number(0x1.62e4p-1) : Number(0x1.62e42fefa38p-1);
    static constexpr Number ln2_low = is_float ? Number(0x1.7f7d1cf8p-20) : Number(0x1.ef35793c7673p-45);
    // exp is 0 below the first and infinite above the second.
    static constexpr Number least_exponent = is_float ? Number(-104) : Number(-746);
    static constexpr Number largest_exponent = is_float ? Number(89) : Number(710);
    // The square of a smaller number is negligible compared with the number.
    static constexpr Number tiny = is_float ? Number(0x1p-26) : Number(0x1p-55);
};

// Evaluates a polynomial; the coefficient of the lowest power is first. Long polynomials are split into two independent
// sums, of the even and the odd powers, that can be computed in parallel.
template <class V, std::size_t count>
OPWRIGHT_INLINE inline V polynomial(const typename V::Element (&coefficients)[count], const V& x) {
    constexpr std::size_t sums = count > 8 ? 2 : 1;
    const V step = sums == 2 ? x * x : x;
    V sum[2] = {coefficients[count - 1], coefficients[count - 2]};
#pragma GCC unroll 32
    for (std::size_t k = count - sums; k > 0; --k) {
        V& next = sum[(count - sums - k) % sums];
        next = fma(next, step, V(coefficients[k - 1]));
    }
    if constexpr (sums == 1) return sum[0];
    // The sum that was updated last contains the constant coefficient.
    constexpr std::size_t even = (count - 1) % 2;
    return fma(sum[1 - even], x, sum[even]);
}

// exp(x) = 2^n * (1 + rest), with |rest| < 0.42. The lowest bits of `shifted` contain n as an integer.
template <class V>
struct Exponential {
    using C = Constants<typename V::Element>;
    V shifted, n, rest;

    OPWRIGHT_INLINE explicit Exponential(const V& x) {
        shifted = fma(x, V(C::log2_e), V(C::whole));
        n = shifted - V(C::whole);
        const V r = fma(n, V(-C::ln2_low), fma(n, V(-C::ln2_high), x));
        rest = fma(r * r, polynomial(Coefficients<typename V::Element>::exp_tail, r), r);
    }
};

// (exp(x) - 1) / 2, halved so that the largest power of two is representable.
template <class V>
OPWRIGHT_INLINE inline V half_expm1(const V& x) {
    using C = Constants<typename V::Element>;
    const Exponential<V> e(greater(V(-40), lesser(V(C::largest_exponent), x)));  // exp(-40) is negligible next to 1
    const V power = V::of_bits((e.shifted.bits() - V(C::whole).bits() + (C::bias - 1)) << C::mantissa_bits);
    return fma(power, e.rest, power - V(typename V::Element(0.5)));
}

}  // namespace detail

template <class Number, int bytes>
OPWRIGHT_INLINE inline Vector<Number, bytes> exp(const Vector<Number, bytes>& x) {
    using V = Vector<Number, bytes>;
    using C = detail::Constants<Number>;
    const detail::Exponential<V> e(greater(V(C::least_exponent), lesser(V(C::largest_exponent), x)));
    const V one = 1 + e.rest;
    if constexpr (bytes == 64) {
        V result;
        detail::Operations<bytes>::scale(result.native(), one.native(), e.n.native());
        return result;
    } else {
        // 2^n itself can be infinite or 0 where the result is neither, so each of two factors gets half of n.
        const auto n = e.shifted.bits() - V(C::whole).bits();
        const auto half = n >> 1;
        const V first = V::of_bits(one.bits() + (half << C::mantissa_bits));
        return first * V::of_bits((n - half + C::bias) << C::mantissa_bits);
    }
}

// exp(x) - 1, accurate near 0.
template <class Number, int bytes>
OPWRIGHT_INLINE inline Vector<Number, bytes> expm1(const Vector<Number, bytes>& x) {
    return select(abs(x) < detail::Constants<Number>::tiny, x, 2 * detail::half_expm1(x));
}

// 1 / (1 + exp(-x))
template <class Number, int bytes>
OPWRIGHT_INLINE inline Vector<Number, bytes> sigmoid(const Vector<Number, bytes>& x) {
    using V = Vector<Number, bytes>;
    const V e = exp(-abs(x));  // at most 1, so nothing overflows
    return select(x >= 0, V(1), e) / (1 + e);
}

template <class Number, int bytes>
OPWRIGHT_INLINE inline Vector<Number, bytes> tanh(const Vector<Number, bytes>& x) {
    using V = Vector<Number, bytes>;
    const V half = detail::half_expm1(-2 * abs(x));  // (1 - e) / (1 + e) with e = exp(-2 |x|)
    return select(abs(x) < detail::Constants<Number>::tiny, x, copysign(half / (1 + half), x));
}

// The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.
template <class Number, int bytes>
OPWRIGHT_INLINE inline Vector<Number, bytes> erf(const Vector<Number, bytes>& x) {
    using V = Vector<Number, bytes>;
    constexpr Number two_over_sqrt_pi = Number(1.12837916709551257390);
    const V a = lesser(V(std::is_same_v<Number, float> ? 4 : 6), abs(x));  // erf is 1 beyond
    const V q = fma(a, V(two_over_sqrt_pi), a * a * detail::polynomial(detail::Coefficients<Number>::erf_tail, a));
    return select(abs(x) < detail::Constants<Number>::tiny, x * two_over_sqrt_pi,
                  copysign(2 * detail::half_expm1(-q), x));
}

// The natural logarithm: -infinity for 0, NaN for negative numbers.
template <class Number, int bytes>
OPWRIGHT_INLINE inline Vector<Number, bytes> log(const Vector<Number, bytes>& x) {
    using V = Vector<Number, bytes>;
    using C = detail::Constants<Number>;
    constexpr Number infinity = std::numeric_limits<Number>::infinity();
    constexpr Number scaled_by = C::is_float ? Number(0x1p32) : Number(0x1p64);
    // x = 2^n * (1 + f), with sqrt(1/2) <= 1 + f < sqrt(2)
    const auto is_subnormal = x < std::numeric_limits<Number>::min();
    const auto bits = select(is_subnormal, x * scaled_by, x).bits();
    const auto exponent = (bits - V(Number(0.70710678118654752440)).bits()) >> C::mantissa_bits;
    const V f = V::of_bits(bits - (exponent << C::mantissa_bits)) - 1;
    const V n = (V::of_bits(V(C::whole).bits() + exponent) - V(C::whole)) -
                select(is_subnormal, V(C::is_float ? 32 : 64), V(0));
    const V half_square = Number(0.5) * f * f;
    V tail;  // log(1 + f) = f - half_square + tail
    if constexpr (C::is_float) {
        tail = f * f * f * detail::polynomial(detail::Coefficients<Number>::log_tail, f);
    } else {
        const V s = f / (2 + f);
        const V square = s * s;
        tail = s * fma(square, detail::polynomial(detail::Coefficients<Number>::log_tail, square), half_square);
    }
    const V result = fma(n, V(C::ln2_high), f - (half_square - fma(n, V(C::ln2_low), tail)));
    const V special = select(x == 0, V(-infinity), select(x < 0, V(std::numeric_limits<Number>::quiet_NaN()), x));
    return select((x > 0) & (x < infinity), result, special);
}

}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

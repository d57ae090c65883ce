// The polynomials of simd/functions.h, the coefficient of the lowest power first. `python benchmarks/vectors/fit.py`
// prints this file.
#pragma once

#include <opwright/visibility.h>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {
namespace detail {

template <class Number>
struct Coefficients;

template <>
struct Coefficients<float> {
    // (exp(x) - 1 - x) / x^2, for |x| <= log(2) / 2
    static constexpr float exp_tail[] = {
        0x1.fffffcp-2f, 0x1.55549p-3f, 0x1.5558f4p-5f, 0x1.123a6cp-7f, 0x1.6a23b8p-10f,
    };
    // (-log(1 - erf(x)) - 2 x / sqrt(pi)) / x^2, for 0 <= x <= 4.0
    static constexpr float erf_tail[] = {
        0x1.45f2fep-1f,  0x1.a4f94ap-4f,   -0x1.39bf3ep-6f, -0x1.5cdcc4p-13f,
        0x1.b67938p-10f, -0x1.4d52aep-11f, 0x1.f0b888p-14f, -0x1.396deep-17f,
    };
    // (log(1 + x) - x + x^2 / 2) / x^3, for sqrt(1/2) <= 1 + x <= sqrt(2)
    static constexpr float log_tail[] = {
        0x1.555548p-2f, -0x1.000006p-2f, 0x1.99a4b6p-3f, -0x1.555c4ep-3f, 0x1.233766p-3f,
        -0x1.fc22p-4f,  0x1.e6f08p-4f,   -0x1.de3c4p-4f, 0x1.1457aap-4f,
    };
};

template <>
struct Coefficients<double> {
    // (exp(x) - 1 - x) / x^2, for |x| <= log(2) / 2
    static constexpr double exp_tail[] = {
        0x1.000000000000ap-1,  0x1.55555555554f9p-3,  0x1.55555555507f1p-5,  0x1.1111111127e92p-7,
        0x1.6c16c1844afdp-10,  0x1.a01a0129afcedp-13, 0x1.a01999adad917p-16, 0x1.71df26355f27cp-19,
        0x1.28adcea570bddp-22, 0x1.ad7ef5eb19addp-26,
    };
    // (-log(1 - erf(x)) - 2 x / sqrt(pi)) / x^2, for 0 <= x <= 6.0
    static constexpr double erf_tail[] = {
        0x1.45f306dc9c8bbp-1,   0x1.a4f4e2a1abefbp-4,   -0x1.396685912a4afp-6,  -0x1.b6b69ebbc2621p-13,
        0x1.bca68f73ed909p-10,  -0x1.356626ed78381p-11, 0x1.b292d8fdf2d1bp-16,  0x1.0e37a2744124ep-14,
        -0x1.f053509e2e751p-16, 0x1.aad14dee8a855p-19,  0x1.a303c2561cb7cp-19,  -0x1.102bd08ef31d1p-19,
        0x1.2ef79db0b6688p-21,  -0x1.1d482413f34ccp-27, -0x1.20a1069767f2bp-24, 0x1.2d6847196c37bp-25,
        -0x1.76d9d08a7c63ap-27, 0x1.485d9c7b5ac78p-29,  -0x1.a28882875b2a6p-32, 0x1.7f1da3f8820cfp-35,
        -0x1.df9d51b257371p-39, 0x1.7087167c63e93p-43,  -0x1.067838282743fp-48,
    };
    // (2 atanh(s) - 2 s) / s^3 by s^2, for s = (m - 1) / (m + 1) and sqrt(1/2) <= m <= sqrt(2)
    static constexpr double log_tail[] = {
        0x1.5555555555593p-1, 0x1.999999997fb1fp-2, 0x1.2492494218587p-2, 0x1.c71c51e78b33fp-3,
        0x1.7466463c7c4a8p-3, 0x1.39a0f3e893355p-3, 0x1.2f0d957d15164p-3,
    };
};

}  // namespace detail
}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

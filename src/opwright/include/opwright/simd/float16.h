// float16 for processors without instructions for it.
#pragma once

#include <opwright/visibility.h>

#include <cstdint>
#include <cstring>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {
namespace detail {

inline float half_to_float(std::uint16_t half) {
    const std::uint32_t sign = std::uint32_t(half & 0x8000) << 16;
    std::uint32_t bits = std::uint32_t(half & 0x7fff) << 13;
    float number;
    if (bits >= 0x7c00u << 13) {  // infinity, or NaN, which becomes quiet
        bits += 0x70000000u;
        if (bits > 0x7f800000u) bits |= 0x400000u;
    } else {  // changes the exponent bias from 15 to 127; a subnormal number becomes normal
        std::memcpy(&number, &bits, sizeof(number));
        number *= 0x1p112f;
        std::memcpy(&bits, &number, sizeof(number));
    }
    bits |= sign;
    std::memcpy(&number, &bits, sizeof(number));
    return number;
}

inline std::uint16_t float_to_half(float number) {  // to nearest, ties to even
    std::uint32_t bits;
    std::memcpy(&bits, &number, sizeof(bits));
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return sign | 0x7e00 | static_cast<std::uint16_t>(bits >> 13 & 0x3ff);
    if (bits >= 0x477ff000) return sign | 0x7c00;  // at least halfway from the largest float16 to the next
    if (bits < 0x38800000) {                       // below the smallest normal number: its last bit is 2^-24
        float magnitude;
        std::memcpy(&magnitude, &bits, sizeof(bits));
        magnitude += 0.5f;
        std::memcpy(&bits, &magnitude, sizeof(bits));
        return sign | static_cast<std::uint16_t>(bits - 0x3f000000);
    }
    return sign | static_cast<std::uint16_t>((bits - (112u << 23) + 0xfff + (bits >> 13 & 1)) >> 13);
}

}  // namespace detail
}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

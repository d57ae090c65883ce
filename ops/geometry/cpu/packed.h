// A strip of a uint8 image with three or four interleaved channels: one load of eight bytes fetches two pixels.
#pragma once

#include <cstdint>
#include <cstring>

#include "strip.h"

namespace geometry {

// For each pixel of a strip, two adjacent pixels of the image.
template <int channels>
class PackedPairs {
    static_assert(channels == 3 || channels == 4);

  public:
    // Reads eight bytes, two of which may belong to a third pixel.
    OPWRIGHT_INLINE void copy(int64_t at, const std::uint8_t* from) { std::memcpy(words_[at], from, 8); }

    // Each pixel in the low bytes of a lane.
    template <class V>
    OPWRIGHT_INLINE void read(int64_t at, typename V::Mask& left, typename V::Mask& right) const {
        const V first = V::load(words_[at]), second = V::load(words_[at] + V::lanes);
        left = even_lanes(first, second).bits();
        right = odd_lanes(first, second).bits();
        if constexpr (channels == 3) right = (left >> 24 & typename V::Mask(0xff)) | right << 8;
    }

  private:
    // Words of four bytes; as floats, for a vector's loads.
    alignas(64) float words_[strip_length][2];
};

template <int channels, int bytes>
OPWRIGHT_INLINE inline void interpolate_packed(const std::uint8_t* origin, int64_t row_stride,
                                               const Strip<float>& strip, std::uint8_t* into) {
    using V = simd::Vector<float, bytes>;
    using Words = typename V::Mask;
    PackedPairs<channels> top, bottom;
    strip.prefetch(origin, 16);
    const std::uint8_t* below = origin + row_stride;
    for (int64_t i = 0; i < strip.count; ++i) {
        top.copy(i, origin + strip.offsets[i]);
        bottom.copy(i, below + strip.offsets[i]);
    }
    alignas(64) std::int32_t pixels[strip_length];
    for (int64_t at = 0; at < strip.count; at += V::lanes) {
        const V x = V::load(strip.x_fractions + at), y = V::load(strip.y_fractions + at);
        const V weights[4] = {(V(1) - x) * (V(1) - y), x * (V(1) - y), (V(1) - x) * y, x * y};
        Words taps[4];
        top.template read<V>(at, taps[0], taps[1]);
        bottom.template read<V>(at, taps[2], taps[3]);
        Words pixel(0);
        for (int channel = 0; channel < channels; ++channel) {
            V sum(0);
            for (int tap = 0; tap < 4; ++tap)
                sum = fma(weights[tap], V::of_integers(taps[tap] >> 8 * channel & Words(0xff)), sum);
            pixel = pixel | round(sum).integers() << 8 * channel;
        }
        pixel.store(pixels + at);
    }
    // A word of three bytes ends with one that belongs to the next pixel, which overwrites it.
    for (int64_t i = 0; i + 1 < strip.count; ++i) std::memcpy(into + i * channels, pixels + i, 4);
    std::memcpy(into + (strip.count - 1) * channels, pixels + strip.count - 1, channels);
}

}  // namespace geometry

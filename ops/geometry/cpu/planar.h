// A strip of one channel, whose pixels are adjacent in the image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "pairs.h"
#include "strip.h"

namespace geometry {

// The taps of a strip's pixels in one channel. One load fetches two adjacent taps.
template <int taps, class T, int bytes>
class PlanarTaps {
  public:
    using V = simd::Vector<Wide<T>, bytes>;

    OPWRIGHT_INLINE PlanarTaps(const T* origin, int64_t row_stride, const Strip<Wide<T>>& strip)
        : origin_(origin), row_stride_(row_stride), strip_(strip) {
        if constexpr (taps == 2) {
            const T* below = origin + row_stride;
            for (int64_t i = 0; i < strip.count; ++i) {
                top_.copy(i, origin + strip.offsets[i]);
                bottom_.copy(i, below + strip.offsets[i]);
            }
        }
    }

    // One row of taps for one pixel per lane of a vector.
    OPWRIGHT_INLINE void read(int64_t at, int row, V (&pixels)[taps]) const {
        if constexpr (taps == 2) {
            (row == 0 ? top_ : bottom_).read(at, pixels[0], pixels[1]);
        } else {
            alignas(64) Wide<T> seen[V::lanes];
            for (int column = 0; column < taps; ++column) {
                const T* tap = origin_ + row * row_stride_ + column;
                for (int lane = 0; lane < V::lanes; ++lane) seen[lane] = widened(tap[strip_.offsets[at + lane]]);
                pixels[column] = V::load(seen);
            }
        }
    }

  private:
    struct None {};
    using Copies = std::conditional_t<taps == 2, Pairs<T>, None>;

    const T* origin_;
    int64_t row_stride_;
    const Strip<Wide<T>>& strip_;
    Copies top_, bottom_;
};

// weights[0] * numbers[0] + weights[1] * numbers[1] + ...
template <int taps, class V>
OPWRIGHT_INLINE inline V weighted_sum(const V (&weights)[taps], const V (&numbers)[taps]) {
    V sum = weights[0] * numbers[0];
    for (int tap = 1; tap < taps; ++tap) sum = fma(weights[tap], numbers[tap], sum);
    return sum;
}

template <class T, class V>
OPWRIGHT_INLINE inline void store_rounded(T* into, const V& numbers, int64_t count) {
    if constexpr (std::is_same_v<T, std::uint8_t>) {
        std::int32_t whole[V::lanes];
        // A cubic exceeds the range of its pixels.
        round(lesser(greater(numbers, V(0)), V(255))).integers().store(whole);
        for (int64_t i = 0; i < count; ++i) into[i] = static_cast<std::uint8_t>(whole[i]);
    } else {
        numbers.store(into, count);
    }
}

template <int taps, class T, int bytes>
OPWRIGHT_INLINE inline void interpolate_planar(const T* origin, int64_t row_stride, const Strip<Wide<T>>& strip,
                                               T* into) {
    using V = simd::Vector<Wide<T>, bytes>;
    strip.prefetch(origin, 64 / sizeof(T));
    const PlanarTaps<taps, T, bytes> seen(origin, row_stride, strip);
    for (int64_t at = 0; at < strip.count; at += V::lanes) {
        V x_weights[taps], y_weights[taps], along[taps];
        find_weights(V::load(strip.x_fractions + at), x_weights);
        find_weights(V::load(strip.y_fractions + at), y_weights);
        for (int row = 0; row < taps; ++row) {
            V pixels[taps];
            seen.read(at, row, pixels);
            along[row] = weighted_sum(x_weights, pixels);
        }
        store_rounded(into + at, weighted_sum(y_weights, along), std::min<int64_t>(V::lanes, strip.count - at));
    }
}

}  // namespace geometry

// A strip of an image with interleaved channels: vectors along the channels.
#pragma once

#include <cstdint>

#include "strip.h"

namespace geometry {

template <int taps, class T, int bytes>
OPWRIGHT_INLINE inline void interpolate_interleaved(const T* origin, const Layout& layout, const Strip<Wide<T>>& strip,
                                                    T* into) {
    using Number = Wide<T>;
    using V = simd::Vector<Number, bytes>;
    const int64_t channels = layout.channels;
    strip.prefetch(origin, std::max<int64_t>(1, 16 / channels));
    for (int64_t i = 0; i < strip.count; ++i) {
        const T* first = origin + strip.offsets[i];
        Number x_weights[taps], y_weights[taps];
        find_weights(strip.x_fractions[i], x_weights);
        find_weights(strip.y_fractions[i], y_weights);
        for (int64_t channel = 0; channel < channels; channel += V::lanes) {
            const int64_t count = std::min<int64_t>(V::lanes, channels - channel);
            V sum(Number(0));
            for (int row = 0; row < taps; ++row) {
                V along(Number(0));
                for (int column = 0; column < taps; ++column) {
                    const T* tap = first + row * layout.row_stride + column * channels + channel;
                    along = fma(V(x_weights[column]), V::load(tap, count), along);
                }
                sum = fma(V(y_weights[row]), along, sum);
            }
            sum.store(into + i * channels + channel, count);
        }
    }
}

}  // namespace geometry

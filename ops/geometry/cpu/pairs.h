// Adjacent pixels of a row, copied from the image so that vectors can load them.
//
// A gather instruction takes as long as one load per element. A load of eight bytes fetches two elements.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "strip.h"

namespace geometry {

// For each pixel of a strip, two adjacent elements of an image.
template <class T>
class Pairs {
  public:
    OPWRIGHT_INLINE void copy(int64_t at, const T* from) {
        if constexpr (std::is_same_v<T, std::uint8_t>) {
            std::uint16_t pair;
            std::memcpy(&pair, from, sizeof(pair));
            pairs_[at] = pair;
        } else {
            std::memcpy(&pairs_[at], from, 2 * sizeof(T));
        }
    }

    template <class V>
    OPWRIGHT_INLINE void read(int64_t at, V& left, V& right) const {
        using Integers = typename V::Mask;
        if constexpr (sizeof(T) == 1) {
            const Integers both = Integers::load(pairs_ + at);
            left = V::of_integers(both & Integers(0xff));
            right = V::of_integers(both >> 8);
        } else if constexpr (sizeof(T) == 2) {
            const Integers both = Integers::load(pairs_ + at);
            left = V::of_bits(both << 16);
            right = V::of_bits(both & Integers(~0xffff));
        } else {
            const T* from = pairs_[at];
            const V first = V::load(from), second = V::load(from + V::lanes);
            left = even_lanes(first, second);
            right = odd_lanes(first, second);
        }
    }

  private:
    using Pair = std::conditional_t<sizeof(T) <= 2, std::int32_t, T[2]>;
    alignas(64) Pair pairs_[strip_length];
};

}  // namespace geometry

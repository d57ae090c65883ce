// Vectors of integers, which also serve as masks.
#pragma once

#include <opwright/formula.h>
#include <opwright/simd/operations.h>

#include <cstdint>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {

// Integers as wide as a Number: int32_t for float, int64_t for double. They wrap around.
template <class Number, int width>
class Integers {
    using Operations = detail::Operations<width>;

  public:
    using Element = detail::BitsOf<Number>;
    using Lanes = detail::GnuVector<Element, width>;
    static constexpr int lanes = width / static_cast<int>(sizeof(Element));

    Integers() = default;
    OPWRIGHT_INLINE Integers(Element x) { Operations::broadcast(lanes_, x); }
    OPWRIGHT_INLINE Integers(const Integers& other) : lanes_(other.lanes_) {}
    OPWRIGHT_INLINE Integers& operator=(const Integers& other) {
        lanes_ = other.lanes_;
        return *this;
    }

    // 0, 1, 2, ...
    OPWRIGHT_INLINE static Integers count_up() {
        Integers result;
        Operations::count_up(result.lanes_);
        return result;
    }

    // Loads the first `count` lanes, at most Integers::lanes. The others become 0, and their memory is not read.
    OPWRIGHT_INLINE static Integers load(const Element* from, std::int64_t count = lanes) {
        Integers result;
        Operations::load(result.lanes_, from, count);
        return result;
    }

    // Stores the first `count` lanes, at most Integers::lanes.
    OPWRIGHT_INLINE void store(Element* into, std::int64_t count = lanes) const {
        Operations::store(into, lanes_, count);
    }

    OPWRIGHT_INLINE friend Integers operator+(const Integers& a, const Integers& b) {
        return apply<&Operations::template add<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Integers operator-(const Integers& a, const Integers& b) {
        return apply<&Operations::template subtract<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Integers operator*(const Integers& a, const Integers& b) {
        return apply<&Operations::template multiply<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Integers operator&(const Integers& a, const Integers& b) {
        return apply<&Operations::template bitwise_and<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Integers operator|(const Integers& a, const Integers& b) {
        return apply<&Operations::template bitwise_or<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Integers operator^(const Integers& a, const Integers& b) {
        return apply<&Operations::template bitwise_xor<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Integers operator~(const Integers& a) { return a ^ Integers(-1); }
    OPWRIGHT_INLINE friend Integers operator<<(const Integers& a, int count) {
        Integers result;
        Operations::shift_left(result.lanes_, a.lanes_, count);
        return result;
    }
    // Shifts in copies of the sign bit (arithmetic shift).
    OPWRIGHT_INLINE friend Integers operator>>(const Integers& a, int count) {
        Integers result;
        Operations::shift_right(result.lanes_, a.lanes_, count);
        return result;
    }

    OPWRIGHT_INLINE friend Integers operator==(const Integers& a, const Integers& b) {
        return apply<&Operations::template equal<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Integers operator!=(const Integers& a, const Integers& b) { return ~(a == b); }
    OPWRIGHT_INLINE friend Integers operator<(const Integers& a, const Integers& b) {
        return apply<&Operations::template less<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Integers operator>(const Integers& a, const Integers& b) { return b < a; }
    OPWRIGHT_INLINE friend Integers operator<=(const Integers& a, const Integers& b) { return ~(b < a); }
    OPWRIGHT_INLINE friend Integers operator>=(const Integers& a, const Integers& b) { return ~(a < b); }

    OPWRIGHT_INLINE friend Integers select(const Integers& mask, const Integers& a, const Integers& b) {
        Integers result;
        Operations::select(result.lanes_, mask.lanes_, a.lanes_, b.lanes_);
        return result;
    }
    OPWRIGHT_INLINE friend Integers min(const Integers& a, const Integers& b) {
        return apply<&Operations::template least<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Integers max(const Integers& a, const Integers& b) {
        return apply<&Operations::template most<Lanes>>(a, b);
    }

    // Returns whether any lane of a mask is true.
    OPWRIGHT_INLINE friend bool any(const Integers& mask) { return Operations::any(mask.lanes_); }

    // The compiler's vector type, for operations that are missing here.
    Lanes& native() { return lanes_; }
    const Lanes& native() const { return lanes_; }

  private:
    template <auto operation>
    OPWRIGHT_INLINE static Integers apply(const Integers& a, const Integers& b) {
        Integers result;
        operation(result.lanes_, a.lanes_, b.lanes_);
        return result;
    }

    Lanes lanes_;
};

// A mask whose first `count` lanes are true.
template <class Number, int width>
OPWRIGHT_INLINE inline Integers<Number, width> first_lanes(std::int64_t count) {
    using Mask = Integers<Number, width>;
    return Mask::count_up() < Mask(static_cast<typename Mask::Element>(count));
}

}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

// Vectors of numbers and of integers, for any width.
//
// A Vector<float, bytes> or Vector<double, bytes> has Vector::lanes numbers, with + - * / and comparisons, lane by
// lane; a number on its own stands for that number in every lane. A comparison returns a Mask: Integers whose lanes
// are -1 (true) or 0, for select(mask, a, b).
#pragma once

#include <opwright/simd/operations.h>

#include <cstdint>
#include <type_traits>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {

// Two bytes in memory, for which there are no vectors: they are loaded as float, and rounded when they are stored, to
// nearest with ties to even.
struct BFloat16 {
    std::uint16_t bits;
};
struct Half {
    std::uint16_t bits;
};

// Whether T is stored as one of the above. opwright/parallel.h says so of PyTorch's own types.
template <class T>
inline constexpr bool is_bfloat16 = std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half>;

// The type to compute with, for a type in memory.
template <class T>
using Wide = std::conditional_t<is_bfloat16<T> || is_half<T>, float, T>;

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
    OPWRIGHT_INLINE Integers(const Integers& other) { Operations::copy(lanes_, other.lanes_); }
    OPWRIGHT_INLINE Integers& operator=(const Integers& other) {
        Operations::copy(lanes_, other.lanes_);
        return *this;
    }

    // 0, 1, 2 and so on
    OPWRIGHT_INLINE static Integers count_up() {
        Integers result;
        Operations::count_up(result.lanes_);
        return result;
    }

    // The first `count` lanes, at most Integers::lanes; the others become 0, and their memory is not read.
    OPWRIGHT_INLINE static Integers load(const Element* from, std::int64_t count = lanes) {
        Integers result;
        Operations::load(result.lanes_, from, count);
        return result;
    }

    // Writes the first `count` lanes, at most Integers::lanes.
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
    // Copies of the sign come in from the left.
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
        return apply<&Operations::template lesser<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Integers max(const Integers& a, const Integers& b) {
        return apply<&Operations::template greater<Lanes>>(a, b);
    }

    // Whether a lane of a mask is true.
    OPWRIGHT_INLINE friend bool any(const Integers& mask) { return Operations::any(mask.lanes_); }

    // The compiler's own vector, for what is missing here.
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

template <class Number, int width>
class Vector {
    static_assert(std::is_same_v<Number, float> || std::is_same_v<Number, double>,
                  "opwright: there are vectors of float and of double; Wide<T> is the one to use for a T in memory");
    using Operations = detail::Operations<width>;

  public:
    using Element = Number;
    using Lanes = detail::GnuVector<Number, width>;
    using Mask = Integers<Number, width>;
    static constexpr int lanes = width / static_cast<int>(sizeof(Number));
    static constexpr int bytes = width;

    Vector() = default;
    OPWRIGHT_INLINE Vector(Number x) { Operations::broadcast(lanes_, x); }
    OPWRIGHT_INLINE Vector(const Vector& other) { Operations::copy(lanes_, other.lanes_); }
    OPWRIGHT_INLINE Vector& operator=(const Vector& other) {
        Operations::copy(lanes_, other.lanes_);
        return *this;
    }

    // ---- Memory ----

    // The first `count` lanes, at most Vector::lanes; the others become 0, and their memory is not read. T is Number
    // or, for float, a type of two bytes.
    template <class T>
    OPWRIGHT_INLINE static Vector load(const T* from, std::int64_t count = lanes) {
        Vector result;
        if constexpr (std::is_same_v<T, Number>) {
            Operations::load(result.lanes_, from, count);
        } else if constexpr (is_bfloat16<T>) {
            static_assert(std::is_same_v<Number, float>, "opwright: load bfloat16 into a vector of float");
            Operations::load_bfloat16(result.lanes_, from, count);
        } else {
            static_assert(is_half<T> && std::is_same_v<Number, float>,
                          "opwright: a vector loads its own type and, if that is float, bfloat16 and float16");
            Operations::load_float16(result.lanes_, from, count);
        }
        return result;
    }

    // Writes the first `count` lanes, at most Vector::lanes. Two bytes are rounded to nearest, ties to even.
    template <class T>
    OPWRIGHT_INLINE void store(T* into, std::int64_t count = lanes) const {
        if constexpr (std::is_same_v<T, Number>) {
            Operations::store(into, lanes_, count);
        } else if constexpr (is_bfloat16<T>) {
            static_assert(std::is_same_v<Number, float>, "opwright: store bfloat16 from a vector of float");
            Operations::store_bfloat16(into, lanes_, count);
        } else {
            static_assert(is_half<T> && std::is_same_v<Number, float>,
                          "opwright: a vector stores its own type and, if that is float, bfloat16 and float16");
            Operations::store_float16(into, lanes_, count);
        }
    }

    // from[offset] for the offset in each lane; every one is read.
    OPWRIGHT_INLINE static Vector gather(const Number* from, const Mask& offsets) {
        Vector result;
        Operations::gather(result.lanes_, from, offsets.native());
        return result;
    }

    // ---- Arithmetic ----

    OPWRIGHT_INLINE friend Vector operator+(const Vector& a, const Vector& b) {
        return apply<&Operations::template add<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Vector operator-(const Vector& a, const Vector& b) {
        return apply<&Operations::template subtract<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Vector operator*(const Vector& a, const Vector& b) {
        return apply<&Operations::template multiply<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Vector operator/(const Vector& a, const Vector& b) {
        return apply<&Operations::template divide<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Vector operator-(const Vector& a) { return of_bits(a.bits() ^ Mask(sign_bit)); }
    OPWRIGHT_INLINE Vector& operator+=(const Vector& other) { return *this = *this + other; }
    OPWRIGHT_INLINE Vector& operator-=(const Vector& other) { return *this = *this - other; }
    OPWRIGHT_INLINE Vector& operator*=(const Vector& other) { return *this = *this * other; }
    OPWRIGHT_INLINE Vector& operator/=(const Vector& other) { return *this = *this / other; }

    // a * b + c, rounded once (with AVX2, AVX-512 or NEON) or twice (in a baseline without such an instruction).
    OPWRIGHT_INLINE friend Vector fma(const Vector& a, const Vector& b, const Vector& c) {
        Vector result;
        Operations::fma(result.lanes_, a.lanes_, b.lanes_, c.lanes_);
        return result;
    }

    OPWRIGHT_INLINE friend Vector abs(const Vector& a) { return of_bits(a.bits() & Mask(~sign_bit)); }
    OPWRIGHT_INLINE friend Vector copysign(const Vector& magnitude, const Vector& sign) {
        return of_bits((magnitude.bits() & Mask(~sign_bit)) | (sign.bits() & Mask(sign_bit)));
    }
    // Rounded correctly; NaN below zero, and -0 for -0.
    OPWRIGHT_INLINE friend Vector sqrt(const Vector& a) { return apply<&Operations::template sqrt<Lanes>>(a); }
    // To the nearest whole number, ties to even.
    OPWRIGHT_INLINE friend Vector round(const Vector& a) { return apply<&Operations::template round<Lanes>>(a); }
    OPWRIGHT_INLINE friend Vector floor(const Vector& a) { return apply<&Operations::template floor<Lanes>>(a); }
    OPWRIGHT_INLINE friend Vector ceil(const Vector& a) { return -floor(-a); }
    OPWRIGHT_INLINE friend Vector trunc(const Vector& a) { return apply<&Operations::template trunc<Lanes>>(a); }

    // The smaller and the larger number, as torch.minimum and torch.maximum have them: NaN if either is NaN. Of two
    // zeros, either.
    OPWRIGHT_INLINE friend Vector min(const Vector& a, const Vector& b) { return select(a == a, lesser(a, b), a); }
    OPWRIGHT_INLINE friend Vector max(const Vector& a, const Vector& b) { return select(a == a, greater(a, b), a); }
    // The same in one instruction: b if either is NaN.
    OPWRIGHT_INLINE friend Vector lesser(const Vector& a, const Vector& b) {
        return apply<&Operations::template lesser<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Vector greater(const Vector& a, const Vector& b) {
        return apply<&Operations::template greater<Lanes>>(a, b);
    }

    // a * 2^n, for whole numbers n from -2 * 126 to 2 * 127 (float) or from -2 * 1022 to 2 * 1023 (double). A result
    // that is not a normal number may have been rounded twice.
    OPWRIGHT_INLINE friend Vector scale(const Vector& a, const Vector& n) {
        return apply<&Operations::template scale<Lanes>>(a, n);
    }

    // ---- Comparisons: false where a number is NaN, except != ----

    OPWRIGHT_INLINE friend Mask operator==(const Vector& a, const Vector& b) {
        return test<&Operations::template equal<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Mask operator!=(const Vector& a, const Vector& b) { return ~(a == b); }
    OPWRIGHT_INLINE friend Mask operator<(const Vector& a, const Vector& b) {
        return test<&Operations::template less<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Mask operator<=(const Vector& a, const Vector& b) {
        return test<&Operations::template less_or_equal<Lanes>>(a, b);
    }
    OPWRIGHT_INLINE friend Mask operator>(const Vector& a, const Vector& b) { return b < a; }
    OPWRIGHT_INLINE friend Mask operator>=(const Vector& a, const Vector& b) { return b <= a; }

    // a where the mask is true, else b. Both have been computed.
    OPWRIGHT_INLINE friend Vector select(const Mask& mask, const Vector& a, const Vector& b) {
        Vector result;
        Operations::select(result.lanes_, mask.native(), a.lanes_, b.lanes_);
        return result;
    }

    // ---- Integers ----

    OPWRIGHT_INLINE static Vector of_bits(const Mask& bits) {
        Vector result;
        Operations::bits(result.lanes_, bits.native());
        return result;
    }
    OPWRIGHT_INLINE Mask bits() const {
        Mask result;
        Operations::bits(result.native(), lanes_);
        return result;
    }
    // Rounded, where a Number cannot have them all.
    OPWRIGHT_INLINE static Vector of_integers(const Mask& integers) {
        Vector result;
        Operations::to_numbers(result.lanes_, integers.native());
        return result;
    }
    // Without the digits after the point. What is NaN, or too large for the integers, becomes any integer.
    OPWRIGHT_INLINE Mask integers() const {
        Mask result;
        Operations::to_integers(result.native(), lanes_);
        return result;
    }

    // ---- Over the lanes, always in the same order ----

    OPWRIGHT_INLINE friend Number sum_of_lanes(const Vector& a) { return Operations::sum_of_lanes(a.lanes_); }
    // NaN if a lane is NaN.
    OPWRIGHT_INLINE friend Number min_of_lanes(const Vector& a) {
        Number lane[lanes];
        a.store(lane);
        Number least = lane[0];
        for (int i = 1; i < lanes; ++i) least = lane[i] < least || lane[i] != lane[i] ? lane[i] : least;
        return least;
    }
    OPWRIGHT_INLINE friend Number max_of_lanes(const Vector& a) {
        Number lane[lanes];
        a.store(lane);
        Number most = lane[0];
        for (int i = 1; i < lanes; ++i) most = lane[i] > most || lane[i] != lane[i] ? lane[i] : most;
        return most;
    }

    // The compiler's own vector, for what is missing here.
    Lanes& native() { return lanes_; }
    const Lanes& native() const { return lanes_; }

  private:
    static constexpr typename Mask::Element sign_bit =
        static_cast<typename Mask::Element>(std::uint64_t{1} << (8 * sizeof(Number) - 1));

    template <auto operation>
    OPWRIGHT_INLINE static Vector apply(const Vector& a) {
        Vector result;
        operation(result.lanes_, a.lanes_);
        return result;
    }
    template <auto operation>
    OPWRIGHT_INLINE static Vector apply(const Vector& a, const Vector& b) {
        Vector result;
        operation(result.lanes_, a.lanes_, b.lanes_);
        return result;
    }
    template <auto operation>
    OPWRIGHT_INLINE static Mask test(const Vector& a, const Vector& b) {
        Mask result;
        operation(result.native(), a.lanes_, b.lanes_);
        return result;
    }

    Lanes lanes_;
};

// The first `count` lanes are true.
template <class Number, int width>
OPWRIGHT_INLINE Integers<Number, width> first_lanes(std::int64_t count) {
    using Mask = Integers<Number, width>;
    return Mask::count_up() < Mask(static_cast<typename Mask::Element>(count));
}

}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

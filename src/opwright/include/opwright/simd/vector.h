// Vectors of numbers, of any width.
//
// Vector<float, bytes> and Vector<double, bytes> hold Vector::lanes numbers and support + - * / and comparisons lane by
// lane; a scalar is broadcast to every lane. A comparison returns a Mask: Integers whose lanes are -1 (true) or 0, for
// select(mask, a, b).
#pragma once

#include <opwright/formula.h>
#include <opwright/simd/integers.h>
#include <opwright/simd/operations.h>
#include <opwright/simd/storage.h>

#include <cstdint>
#include <type_traits>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {

template <class Number, int width>
class Vector {
    static_assert(std::is_same_v<Number, float> || std::is_same_v<Number, double>,
                  "opwright: a vector holds float or double: use Wide<T> for a type T in memory");
    using Operations = detail::Operations<width>;

  public:
    using Element = Number;
    using Lanes = detail::GnuVector<Number, width>;
    using Mask = Integers<Number, width>;
    static constexpr int lanes = width / static_cast<int>(sizeof(Number));
    static constexpr int bytes = width;

    Vector() = default;
    OPWRIGHT_INLINE Vector(Number x) { Operations::broadcast(lanes_, x); }
    OPWRIGHT_INLINE Vector(const Vector& other) : lanes_(other.lanes_) {}
    OPWRIGHT_INLINE Vector& operator=(const Vector& other) {
        lanes_ = other.lanes_;
        return *this;
    }

    // ---- Memory ----

    // Loads the first `count` lanes, at most Vector::lanes. The others become 0, and their memory is not read. T is
    // Number or, for float, a 2-byte type.
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
                          "opwright: a vector loads its own type; a vector of float also loads bfloat16 and float16");
            Operations::load_float16(result.lanes_, from, count);
        }
        return result;
    }

    // Stores the first `count` lanes, at most Vector::lanes. 2-byte types are rounded to nearest, ties to even.
    template <class T>
    OPWRIGHT_INLINE void store(T* into, std::int64_t count = lanes) const {
        if constexpr (std::is_same_v<T, Number>) {
            Operations::store(into, lanes_, count);
        } else if constexpr (is_bfloat16<T>) {
            static_assert(std::is_same_v<Number, float>, "opwright: store bfloat16 from a vector of float");
            Operations::store_bfloat16(into, lanes_, count);
        } else {
            static_assert(is_half<T> && std::is_same_v<Number, float>,
                          "opwright: a vector stores its own type; a vector of float also stores bfloat16 and float16");
            Operations::store_float16(into, lanes_, count);
        }
    }

    // Loads from[offset] for the offset in each lane; every lane is read.
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

    // a * b + c, rounded once (with AVX2, AVX-512 or NEON) or twice (in a baseline without an fma instruction).
    OPWRIGHT_INLINE friend Vector fma(const Vector& a, const Vector& b, const Vector& c) {
        Vector result;
        Operations::fma(result.lanes_, a.lanes_, b.lanes_, c.lanes_);
        return result;
    }

    OPWRIGHT_INLINE friend Vector abs(const Vector& a) { return of_bits(a.bits() & Mask(~sign_bit)); }
    OPWRIGHT_INLINE friend Vector copysign(const Vector& magnitude, const Vector& sign) {
        return of_bits((magnitude.bits() & Mask(~sign_bit)) | (sign.bits() & Mask(sign_bit)));
    }
    // Correctly rounded; NaN for negative numbers, -0 for -0.
    OPWRIGHT_INLINE friend Vector sqrt(const Vector& a) {
        Vector result;
        Operations::sqrt(result.lanes_, a.lanes_);
        return result;
    }
    // Rounds to the nearest whole number, ties to even.
    OPWRIGHT_INLINE friend Vector round(const Vector& a) {
        Vector result;
        Operations::round(result.lanes_, a.lanes_);
        return result;
    }
    OPWRIGHT_INLINE friend Vector floor(const Vector& a) {
        Vector result;
        Operations::floor(result.lanes_, a.lanes_);
        return result;
    }
    OPWRIGHT_INLINE friend Vector ceil(const Vector& a) { return -floor(-a); }
    OPWRIGHT_INLINE friend Vector trunc(const Vector& a) {
        Vector result;
        Operations::trunc(result.lanes_, a.lanes_);
        return result;
    }

    // The minimum and maximum, as in torch.minimum and torch.maximum: NaN if either is NaN. For two zeros, either one.
    OPWRIGHT_INLINE friend Vector min(const Vector& a, const Vector& b) { return select(a == a, lesser(a, b), a); }
    OPWRIGHT_INLINE friend Vector max(const Vector& a, const Vector& b) { return select(a == a, greater(a, b), a); }
    // The same in one instruction, but returns b if either is NaN.
    OPWRIGHT_INLINE friend Vector lesser(const Vector& a, const Vector& b) {
        Vector result;
        Operations::lesser(result.lanes_, a.lanes_, b.lanes_);
        return result;
    }
    OPWRIGHT_INLINE friend Vector greater(const Vector& a, const Vector& b) {
        Vector result;
        Operations::greater(result.lanes_, a.lanes_, b.lanes_);
        return result;
    }

    // ---- Comparisons: false for NaN, except != ----

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

    // a where the mask is true, otherwise b. Both are always computed.
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
    // Converts to Number, rounding integers that it cannot represent.
    OPWRIGHT_INLINE static Vector of_integers(const Mask& integers) {
        Vector result;
        Operations::to_numbers(result.lanes_, integers.native());
        return result;
    }
    // Truncates toward zero. The result for NaN and for numbers out of range is unspecified.
    OPWRIGHT_INLINE Mask integers() const {
        Mask result;
        Operations::to_integers(result.native(), lanes_);
        return result;
    }

    // ---- Between lanes ----

    // Lanes 0, 2, 4, ... of a, then of b.
    OPWRIGHT_INLINE friend Vector even_lanes(const Vector& a, const Vector& b) {
        return apply<&Operations::template every_second<0, Lanes>>(a, b);
    }
    // Lanes 1, 3, 5, ... of a, then of b.
    OPWRIGHT_INLINE friend Vector odd_lanes(const Vector& a, const Vector& b) {
        return apply<&Operations::template every_second<1, Lanes>>(a, b);
    }
    // Lane 0 of a, lane 0 of b, lane 1 of a, ..., up to the middle.
    OPWRIGHT_INLINE friend Vector interleave_lower(const Vector& a, const Vector& b) {
        return apply<&Operations::template interleave<false, Lanes>>(a, b);
    }
    // The same, starting from the middle.
    OPWRIGHT_INLINE friend Vector interleave_upper(const Vector& a, const Vector& b) {
        return apply<&Operations::template interleave<true, Lanes>>(a, b);
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

    // The compiler's vector type, for operations that are missing here.
    Lanes& native() { return lanes_; }
    const Lanes& native() const { return lanes_; }

  private:
    static constexpr typename Mask::Element sign_bit =
        static_cast<typename Mask::Element>(std::uint64_t{1} << (8 * sizeof(Number) - 1));

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

}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

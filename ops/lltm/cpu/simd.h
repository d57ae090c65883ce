// Vectors of the processor's full width, from one source: it is written for any width, compiled for each instruction
// set, and the widest that the processor supports is chosen at run time. Without PyTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace lltm {

// The upper half of a float32, as it is stored in memory.
struct BFloat16 {
    std::uint16_t bits;
};

// The type to compute with, for a type in memory.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

namespace detail {
template <class Element, int bytes>
struct Of {
    typedef Element Vector __attribute__((vector_size(bytes)));
};
}  // namespace detail

template <class Number, int bytes>
struct Vector {
    using Bits = std::conditional_t<sizeof(Number) == 4, std::int32_t, std::int64_t>;
    using Numbers = typename detail::Of<Number, bytes>::Vector;
    using Integers = typename detail::Of<Bits, bytes>::Vector;
    static constexpr int lanes = bytes / static_cast<int>(sizeof(Number));

    // ---- Between memory and vectors ----

    // One number in every lane. (Adding it to zeros would not copy it: a negative zero would lose its sign.)
    [[gnu::always_inline]] static Numbers all(Number x) { return __builtin_shuffle(Numbers{x}, Integers{}); }

    // The first `count` lanes; the others are zero.
    template <class T>
    [[gnu::always_inline]] static Numbers load(const T* from, std::int64_t count = lanes) {
        if constexpr (std::is_same_v<T, Number>) {
            Numbers numbers{};
            std::memcpy(&numbers, from, count == lanes ? bytes : count * sizeof(T));
            return numbers;
        } else {
            Halves halves{};
            std::memcpy(&halves, from, count == lanes ? bytes / 2 : count * sizeof(T));
            return reinterpret_cast<Numbers>(__builtin_convertvector(halves, Words) << 16);
        }
    }

    template <class T>
    [[gnu::always_inline]] static void store(T* into, Numbers numbers, std::int64_t count = lanes) {
        if constexpr (std::is_same_v<T, Number>) {
            std::memcpy(into, &numbers, count == lanes ? bytes : count * sizeof(T));
        } else {
            const Words words = reinterpret_cast<Words>(numbers);
            // opwright: equivalent [0]: only the rounding of ties depends on it
            // opwright: equivalent [2]: the same
            const Words rounded = (words + 0x7fff + ((words >> 16) & 1)) >> 16;  // to nearest, ties to even
            const Words nan = (words >> 16) | 0x40;                              // rounded, it could become infinite
            const Halves halves = __builtin_convertvector(numbers == numbers ? rounded : nan, Halves);
            std::memcpy(into, &halves, count == lanes ? bytes / 2 : count * sizeof(T));
        }
    }

    // Calls act(first, count) for each vector of a row of `size` elements. `count` is a constant for all full vectors,
    // so that one instruction loads or stores each.
    template <class Act>
    [[gnu::always_inline]] static void over(std::int64_t size, const Act& act) {
        std::int64_t first = 0;
        // opwright: equivalent [<]: only the speed depends on it
        for (; first + lanes <= size; first += lanes) act(first, std::integral_constant<std::int64_t, lanes>());
        if (first < size) act(first, size - first);  // opwright: equivalent [<=]: no elements
    }

    // Four columns of a row-major matrix: a vector each, with a lane for each of `count` rows. They are fetched some
    // time before they are needed, because a vector can be read quickly only after the small writes that fill it.
    class FourColumns {
      public:
        [[gnu::always_inline]] void fetch(const Number* from, std::int64_t stride, std::int64_t count) {
            // opwright: equivalent: nothing that is computed from the other rows is stored
            if (count < lanes) std::memset(rows_, 0, sizeof(rows_));
            for (std::int64_t row = 0; row < count; ++row)
                std::memcpy(rows_[row], from + row * stride, sizeof(rows_[row]));
        }

        [[gnu::always_inline]] void read(Numbers (&columns)[4]) const {
            Numbers quarters[4];
            std::memcpy(quarters, rows_, sizeof(rows_));
            const Numbers even[2] = {every_second(quarters[0], quarters[1], 0),
                                     every_second(quarters[2], quarters[3], 0)};
            const Numbers odd[2] = {every_second(quarters[0], quarters[1], 1),
                                    every_second(quarters[2], quarters[3], 1)};
            columns[0] = every_second(even[0], even[1], 0);
            columns[1] = every_second(odd[0], odd[1], 0);
            columns[2] = every_second(even[0], even[1], 1);
            columns[3] = every_second(odd[0], odd[1], 1);
        }

      private:
        alignas(bytes) Number rows_[lanes][4];
    };

    [[gnu::always_inline]] static void store_columns(Number* into, std::int64_t stride, std::int64_t count,
                                                     const Numbers (&columns)[4]) {
        const Numbers even[2] = {in_turn(columns[0], columns[2], 0), in_turn(columns[0], columns[2], lanes / 2)};
        const Numbers odd[2] = {in_turn(columns[1], columns[3], 0), in_turn(columns[1], columns[3], lanes / 2)};
        const Numbers quarters[4] = {in_turn(even[0], odd[0], 0), in_turn(even[0], odd[0], lanes / 2),
                                     in_turn(even[1], odd[1], 0), in_turn(even[1], odd[1], lanes / 2)};
        alignas(bytes) Number rows[lanes][4];
        std::memcpy(rows, quarters, sizeof(rows));
        for (std::int64_t row = 0; row < count; ++row) std::memcpy(into + row * stride, rows[row], sizeof(rows[row]));
    }

    // ---- Functions, within two units in the last place. NaN, infinities and signed zeros are treated as in <cmath>; a
    // result below the smallest normal number may be zero. ----

    [[gnu::always_inline]] static Numbers sigmoid(Numbers x) {
        const Numbers e = exp(minus_magnitude(x));  // at most 1: nothing overflows
        // opwright: equivalent [>]: at zero, both are the same
        return (x >= 0 ? all(1) : e) / (1 + e);
    }

    [[gnu::always_inline]] static Numbers tanh(Numbers x) {
        // (1 - e) / (1 + e) with e = exp(-2|x|), whose expm1 keeps the digits that a small x would lose
        const Numbers e = expm1(2 * minus_magnitude(x));
        return with_sign_of(x, e / (2 + e));
    }

    // x for x > 0, else exp(x) - 1
    // opwright: equivalent [>=]: only the sign of zero depends on it
    [[gnu::always_inline]] static Numbers elu(Numbers x) { return x > 0 ? x : expm1(minus_magnitude(x)); }

  private:
    using Words = typename detail::Of<std::uint32_t, bytes>::Vector;
    using Halves = typename detail::Of<std::uint16_t, bytes / 2>::Vector;

    static constexpr bool is_float = sizeof(Number) == 4;
    static constexpr int mantissa_bits = is_float ? 23 : 52;
    static constexpr Bits exponent_bias = is_float ? 127 : 1023;
    static constexpr Bits sign_bit = Bits(std::uint64_t{1} << (8 * sizeof(Number) - 1));
    // Added to a number, it leaves the nearest integer in the lowest bits.
    static constexpr Number whole = is_float ? Number(0x1.8p23) : Number(0x1.8p52);
    static constexpr Number lowest = is_float ? Number(-87.3) : Number(-708.3);  // exp of it is still a normal number
    static constexpr Number log2_e = Number(1.44269504088896340736);
    // ln 2 in two parts. The first ends in zeros, so that its product with an integer is exact (Cody and Waite,
    // "Software Manual for the Elementary Functions", 1980).
    static constexpr Number ln2_high = is_float ? Number(0x1.62e4p-1) : Number(0x1.62e42fefa38p-1);
    static constexpr Number ln2_low = is_float ? Number(0x1.7f7d1cf8p-20) : Number(0x1.ef35793c7673p-45);

    [[gnu::always_inline]] static Numbers minus_magnitude(Numbers x) {
        return reinterpret_cast<Numbers>(reinterpret_cast<Integers>(x) | sign_bit);
    }

    [[gnu::always_inline]] static Numbers with_sign_of(Numbers sign, Numbers x) {
        return reinterpret_cast<Numbers>((reinterpret_cast<Integers>(x) & ~sign_bit) |
                                         (reinterpret_cast<Integers>(sign) & sign_bit));
    }

    // exp(x) for x <= 0, as power * (1 + rest): `power` is a power of two, and 1 + rest is near 1.
    struct Exponential {
        Numbers power, rest;
    };

    [[gnu::always_inline]] static Exponential exponential(Numbers x) {
        // opwright: equivalent [<=]: both are the same
        x = x < lowest ? all(lowest) : x;  // NaN stays NaN
        const Numbers shifted = x * log2_e + whole;
        const Numbers n = shifted - whole;
        const Numbers r = (x - n * ln2_high) - n * ln2_low;  // at most ln(2) / 2
        const Integers exponent = reinterpret_cast<Integers>(shifted) - reinterpret_cast<Integers>(all(whole));
        const Numbers power = reinterpret_cast<Numbers>((exponent + exponent_bias) << mantissa_bits);
        // Taylor series of exp(r) - 1. The first omitted term is below half a unit in the last place.
        // opwright: equivalent [8]: more digits than the type has
        // opwright: equivalent [14]: the same
        constexpr int degree = is_float ? 7 : 13;
        Numbers sum = all(one_over_factorial(degree));
#pragma GCC unroll 16
        for (int k = degree - 1; k > 1; --k) sum = sum * r + one_over_factorial(k);
        return {power, sum * r * r + r};
    }

    static constexpr Number one_over_factorial(int k) {
        double product = 1;
        for (int i = 2; i <= k; ++i) product *= i;
        return Number(1 / product);
    }

    [[gnu::always_inline]] static Numbers exp(Numbers x) {
        const Exponential e = exponential(x);
        return x < lowest ? Numbers{} : e.power * e.rest + e.power;
    }

    [[gnu::always_inline]] static Numbers expm1(Numbers x) {
        const Exponential e = exponential(x);
        return e.power * e.rest + (e.power - 1);
    }

    // Every second element of a, then of b, from element `first` (0 or 1) on.
    [[gnu::always_inline]] static Numbers every_second(Numbers a, Numbers b, int first) {
        Integers from{};
#pragma GCC unroll 16
        for (int lane = 0; lane < lanes; ++lane) from[lane] = 2 * lane + first;
        return __builtin_shuffle(a, b, from);
    }

    // a[first], b[first], a[first + 1], b[first + 1] and so on.
    [[gnu::always_inline]] static Numbers in_turn(Numbers a, Numbers b, int first) {
        Integers from{};
#pragma GCC unroll 16
        for (int lane = 0; lane < lanes; ++lane) from[lane] = first + lane / 2 + (lane % 2) * lanes;
        return __builtin_shuffle(a, b, from);
    }
};

// ---- One compilation for each instruction set ----
//
// A job has `template <int bytes> void run(int64_t begin, int64_t end) const`, always inlined, with all that it calls:
// it becomes part of one of the functions below, and is compiled for the instructions that this function names.

template <class Job>
void run_baseline(const Job& job, std::int64_t begin, std::int64_t end) {
    job.template run<16>(begin, end);
}

#if defined(__x86_64__)
template <class Job>
[[gnu::target("avx2,fma")]] void run_avx2(const Job& job, std::int64_t begin, std::int64_t end) {
    job.template run<32>(begin, end);
}

template <class Job>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] void run_avx512(const Job& job, std::int64_t begin,
                                                                               std::int64_t end) {
    job.template run<64>(begin, end);
}
#endif

enum class InstructionSet { baseline, avx2, avx512 };

// The widest that this processor supports, or the narrower one that LLTM_SIMD=baseline or LLTM_SIMD=avx2 selects.
inline InstructionSet instruction_set() {
    static const InstructionSet set = [] {
#if defined(__x86_64__)
        const char* asked = std::getenv("LLTM_SIMD");
        const std::string_view at_most = asked ? asked : "";
        // opwright: equivalent: seen only on a processor that has one of them
        const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        // opwright: equivalent: seen only on a processor that has a part of them
        const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            // opwright: equivalent: the same
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
        if (avx512 && at_most.empty()) return InstructionSet::avx512;    // opwright: equivalent: only the speed
        if (avx2 && at_most != "baseline") return InstructionSet::avx2;  // opwright: equivalent: only the speed
#endif
        return InstructionSet::baseline;
    }();
    return set;
}

inline int lanes_of(InstructionSet set, std::size_t element_size) {
    // opwright: equivalent: only the speed depends on it
    const int bytes = set == InstructionSet::avx512 ? 64 : set == InstructionSet::avx2 ? 32 : 16;
    // opwright: equivalent: only the speed depends on it
    return bytes / static_cast<int>(element_size);
}

template <class Job>
void run(const Job& job, std::int64_t begin, std::int64_t end) {
#if defined(__x86_64__)
    const InstructionSet set = instruction_set();
    // opwright: equivalent [;]: only the speed depends on it
    if (set == InstructionSet::avx512) return run_avx512(job, begin, end);
    // opwright: equivalent [;]: only the speed depends on it
    if (set == InstructionSet::avx2) return run_avx2(job, begin, end);
#endif
    run_baseline(job, begin, end);
}

}  // namespace lltm

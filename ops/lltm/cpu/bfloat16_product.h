// Products of bfloat16 with sums in float32, on processors with instructions for them: plain rows of numbers, without
// PyTorch.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "vectors.h"

namespace lltm {

// Whether to use this processor's bfloat16 products: on x86-64, those of AVX-512's extension, which every processor
// with AMX has too. False if the environment variable OPWRIGHT_SIMD selects an instruction set. On other processors
// PyTorch decides.
inline bool multiplies_bfloat16() {
#if defined(__x86_64__)
    static const bool does = [] {
        const char* asked = std::getenv("OPWRIGHT_SIMD");
        // opwright: equivalent: seen only on a processor that has a part of them
        return (asked == nullptr || *asked == '\0') && simd::instruction_set() == simd::InstructionSet::avx512 &&
               // opwright: equivalent: the same
               __builtin_cpu_supports("avx512bf16");
    }();
    return does;
#else
    return true;
#endif
}

// Whether PairedProduct is defined.
#if defined(__x86_64__)
constexpr bool has_paired_product = true;
#else
constexpr bool has_paired_product = false;
#endif

// into = left right, or into += left right, over columns of `right`. All are row-major; strides are those of the rows.
// An element of `right` is a pair of numbers from two rows of the matrix: one instruction adds two products to each
// sum. It rounds to nearest, and flushes subnormal numbers to zero.
template <class T>
struct PairedProduct {
    const BFloat16* left;
    const float* right;  // each the bits of a pair; whole vectors in each row
    T* into;
    std::int64_t left_stride;
    std::int64_t right_stride;
    std::int64_t into_stride;
    std::int64_t rows;
    std::int64_t pairs;  // half of the numbers in a row of `left`
    bool adds;

#if defined(__x86_64__)
// The instructions that a function may use.
#define LLTM_WITH_BFLOAT16 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c"), gnu::flatten]]
    LLTM_WITH_BFLOAT16 void run(std::int64_t begin, std::int64_t end) const {
        std::int64_t column = begin;
        // opwright: equivalent [<]: only the speed depends on it
        for (; column + 3 * V::lanes <= end; column += 3 * V::lanes) all_rows<3>(column, Whole());
        // opwright: equivalent [<]: only the speed depends on it
        for (; column + 2 * V::lanes <= end; column += 2 * V::lanes) all_rows<2>(column, Whole());
        // opwright: equivalent [<]: only the speed depends on it
        for (; column + V::lanes <= end; column += V::lanes) all_rows<1>(column, Whole());
        if (column < end) all_rows<1>(column, end - column);  // opwright: equivalent [<=]: no columns
    }

  private:
    using V = Vector<float, 64>;
    using Whole = std::integral_constant<std::int64_t, V::lanes>;

    template <int vectors, class Count>
    LLTM_WITH_BFLOAT16 OPWRIGHT_INLINE void all_rows(std::int64_t column, Count count) const {
        std::int64_t row = 0;
        for (; row + 8 <= rows; row += 8) some_rows<vectors, 8>(row, column, count);
        if (row + 4 <= rows) some_rows<vectors, 4>(row, column, count), row += 4;
        if (row + 2 <= rows) some_rows<vectors, 2>(row, column, count), row += 2;
        if (row < rows) some_rows<vectors, 1>(row, column, count);
    }

    template <int vectors, int tile, class Count>
    LLTM_WITH_BFLOAT16 OPWRIGHT_INLINE void some_rows(std::int64_t row, std::int64_t column, Count count) const {
        T* const corner = into + row * into_stride + column;
        V sums[tile][vectors];
#pragma GCC unroll 8
        for (int i = 0; i < tile; ++i)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; ++v)
                sums[i][v] = adds ? V::load(corner + i * into_stride + v * V::lanes, count) : V(0);
        const BFloat16* a = left + row * left_stride;
        const float* b = right + column;
        for (std::int64_t k = 0; k < pairs; ++k, a += 2, b += right_stride) {
            __m512bh factors[vectors];
#pragma GCC unroll 3
            for (int v = 0; v < vectors; ++v)
                factors[v] = reinterpret_cast<__m512bh>(V::load(b + v * V::lanes).native());
#pragma GCC unroll 8
            for (int i = 0; i < tile; ++i) {
                std::int32_t pair;
                std::memcpy(&pair, a + i * left_stride, sizeof(pair));
                const __m512bh both = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 3
                for (int v = 0; v < vectors; ++v)
                    sums[i][v].native() = _mm512_dpbf16_ps(sums[i][v].native(), factors[v], both);
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < tile; ++i)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; ++v) sums[i][v].store(corner + i * into_stride + v * V::lanes, count);
    }
#undef LLTM_WITH_BFLOAT16
#endif
};

template <class T>
void run(const PairedProduct<T>& job, std::int64_t begin, std::int64_t end) {
    job.run(begin, end);
}

}  // namespace lltm

// Numbers on the GPU: their layout in memory, the types to compute with, and the functions of the gates.
#pragma once

#include <cuda_runtime.h>
#include <torch/headeronly/core/TensorAccessor.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace lltm::gpu {

// Half precision is used only for storage: intermediate results would lose their last digits.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A matrix to read, with any strides. If its data is null, all elements are zero.
template <class T>
using Matrix = torch::headeronly::HeaderOnlyGenericPackedTensorAccessor<const T, 2>;

// A matrix to write, with any strides.
template <class T>
using MutableMatrix = torch::headeronly::HeaderOnlyGenericPackedTensorAccessor<T, 2>;

// A sequence of matrices.
template <class T>
using Matrices = torch::headeronly::HeaderOnlyGenericPackedTensorAccessor<const T, 3>;

// A gradient: rows, and a value to add to all of them. The gradient of a sum is one expanded value, without rows.
template <class T>
struct Gradient {
    Matrix<T> rows;
    const T* everywhere;  // or null
};

template <class T>
__device__ Wide<T> everywhere_of(const Gradient<T>& gradient) {
    return gradient.everywhere == nullptr ? Wide<T>(0) : static_cast<Wide<T>>(*gradient.everywhere);
}

// ---- Several numbers at a time ----

// The maximum number of bytes that one instruction loads or stores.
constexpr int vector_bytes = 16;

// Numbers to compute with.
template <class T, int width>
struct Numbers {
    Wide<T> at[width];
};

// Numbers in memory, aligned so that one instruction moves them all. A thread issues all of its loads before it uses
// any of their results: otherwise it would wait for each vector in turn.
template <class T, int width>
struct alignas(vector_bytes) Pack {
    static_assert(sizeof(T) * width == vector_bytes);
    std::uint32_t words[4];

    __device__ Wide<T> operator[](int i) const {
        if constexpr (sizeof(T) == 2) {
            const auto bits = static_cast<std::uint16_t>(words[i / 2] >> 16 * (i % 2));
            return static_cast<Wide<T>>(T(bits, T::from_bits()));
        } else if constexpr (sizeof(T) == 4) {
            return std::bit_cast<T>(words[i]);
        } else {
            return std::bit_cast<T>(std::uint64_t{words[2 * i + 1]} << 32 | words[2 * i]);
        }
    }
};

template <class T>
struct Pack<T, 1> {
    T number;

    __device__ Wide<T> operator[](int /*i*/) const { return static_cast<Wide<T>>(number); }
};

template <int width, class T>
__device__ Pack<T, width> load(const Matrix<T>& from, int64_t row, int64_t column) {
    if (from.data() == nullptr) return {};
    if constexpr (width == 1) {
        return {from[row][column]};
    } else {
        return *reinterpret_cast<const Pack<T, width>*>(from[row].data() + column);
    }
}

template <class T, int width>
__device__ void store(T* into, const Numbers<T, width>& numbers) {
    if constexpr (width == 1) {
        *into = static_cast<T>(numbers.at[0]);
    } else {
        struct {
            T at[width];
        } narrow;
#pragma unroll
        for (int i = 0; i < width; ++i) narrow.at[i] = static_cast<T>(numbers.at[i]);
        const auto words = std::bit_cast<uint4>(narrow);
#if defined(__CUDA_ARCH__)
        // The compiler may split an assignment into one instruction per number.
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(into)), "r"(words.x),
                     "r"(words.y), "r"(words.z), "r"(words.w)
                     : "memory");
#else
        *reinterpret_cast<uint4*>(into) = words;
#endif
    }
}

// ---- Functions ----

// a / b, within two units in the last place, for b up to 2^126 or infinite.
template <class T>
__host__ __device__ T quotient(T a, T b) {
#if defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<T, float>) return __fdividef(a, b);
#endif
    return a / b;
}

// As accurate as PyTorch's, except for one unit in the last place.
template <class T>
struct Functions {
    __host__ __device__ static T sigmoid(T x) { return quotient(T(1), 1 + std::exp(-x)); }
    __host__ __device__ static T tanh(T x) { return std::tanh(x); }
    // x for x > 0, else exp(x) - 1
    __host__ __device__ static T elu(T x) { return x > 0 ? x : std::expm1(x); }
};

// Accurate to 16 bits, for numbers that are stored in 11 or 8. With half the bytes to move, the exact functions would
// dominate the time.
struct ShortFunctions {
    __host__ __device__ static float sigmoid(float x) { return quotient(1.f, 1 + exp(-x)); }

    __host__ __device__ static float tanh(float x) {
        if (is_tiny(x)) return x * (1 - x * x * (1 / 3.f));
        const float e = exp(-2 * std::fabs(x));  // at most 1, so it does not overflow
        return std::copysign(quotient(1 - e, 1 + e), x);
    }

    __host__ __device__ static float elu(float x) {
        if (x > 0) return x;
        return is_tiny(x) ? x * (1 + x * (0.5f + x * (1 / 6.f))) : exp(x) - 1;
    }

  private:
    // Its exponential is so close to 1 that their difference would have few correct digits. The series has enough.
    __host__ __device__ static bool is_tiny(float x) { return std::fabs(x) < 1 / 16.f; }

    __host__ __device__ static float exp(float x) {
#if defined(__CUDA_ARCH__)
        return __expf(x);
#else
        return std::exp(x);
#endif
    }
};

template <>
struct Functions<torch::headeronly::Half> : ShortFunctions {};
template <>
struct Functions<torch::headeronly::BFloat16> : ShortFunctions {};

}  // namespace lltm::gpu

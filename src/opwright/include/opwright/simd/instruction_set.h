// One compilation of a job for each instruction set, and the choice between them at run time.
#pragma once

#include <opwright/visibility.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

// The instruction sets that the vectors of 32 and of 64 bytes are compiled for. Everywhere else: what the compiler is
// told to use, which is SSE2 or NEON if it is told nothing, with vectors of 16 bytes.
#if defined(__x86_64__)
#define OPWRIGHT_SIMD_AVX2 [[gnu::target("avx2,fma,f16c")]]
#define OPWRIGHT_SIMD_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]]
#endif

// For the functions and lambdas that a job calls, before a function and behind the parameters of a lambda. What is not
// inlined into the job is right, and slow: it is compiled without the instructions that the job may use.
//
//     template <class V>
//     OPWRIGHT_INLINE V silu(const V& x) { return x * sigmoid(x); }
//     [=](auto x) OPWRIGHT_INLINE { return factor * silu(x); }
#define OPWRIGHT_INLINE __attribute__((always_inline))

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {

enum class InstructionSet { baseline, avx2, avx512 };

namespace detail {

inline InstructionSet widest_instruction_set() {
#if defined(__x86_64__)
    const char* asked = std::getenv("OPWRIGHT_SIMD");
    const std::string_view at_most = asked ? asked : "";
    // Every processor with AVX2 and FMA also converts float16 (F16C), which not every compiler can ask about.
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx512 && at_most != "avx2" && at_most != "baseline") return InstructionSet::avx512;
    if (avx2 && at_most != "baseline") return InstructionSet::avx2;
#endif
    return InstructionSet::baseline;
}

// The operations of vectors are inlined here, into functions that may use their instructions.
template <class Job>
[[gnu::flatten]] void run_baseline(const Job& job, std::int64_t begin, std::int64_t end) {
    job.template run<16>(begin, end);
}

#if defined(__x86_64__)
template <class Job>
OPWRIGHT_SIMD_AVX2 [[gnu::flatten]] void run_avx2(const Job& job, std::int64_t begin, std::int64_t end) {
    job.template run<32>(begin, end);
}

template <class Job>
OPWRIGHT_SIMD_AVX512 [[gnu::flatten]] void run_avx512(const Job& job, std::int64_t begin, std::int64_t end) {
    job.template run<64>(begin, end);
}
#endif

}  // namespace detail

// The widest instruction set that this processor supports. OPWRIGHT_SIMD=baseline or OPWRIGHT_SIMD=avx2 in the
// environment selects a narrower one, for tests and comparisons; it is read once.
inline InstructionSet instruction_set() {
    static const InstructionSet set = detail::widest_instruction_set();
    return set;
}

// How many bytes a vector has.
inline int vector_bytes(InstructionSet set) {
    return set == InstructionSet::avx512 ? 64 : set == InstructionSet::avx2 ? 32 : 16;
}

// Calls job.run<bytes>(begin, end) with the width of this processor's vectors. The job is a class with
//
//     template <int bytes>
//     OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const;
//
// The instruction set may be any that the processor supports.
template <class Job>
void run(const Job& job, std::int64_t begin, std::int64_t end,
         [[maybe_unused]] InstructionSet set = instruction_set()) {
#if defined(__x86_64__)
    if (set == InstructionSet::avx512) return detail::run_avx512(job, begin, end);
    if (set == InstructionSet::avx2) return detail::run_avx2(job, begin, end);
#endif
    detail::run_baseline(job, begin, end);
}

}  // namespace simd
}  // namespace opwright OPWRIGHT_HIDDEN

// Compiles a job for each instruction set and selects one at run time.
#pragma once

#include <opwright/formula.h>
#include <opwright/simd/targets.h>
#include <opwright/visibility.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace opwright OPWRIGHT_HIDDEN {
namespace simd {

enum class InstructionSet { baseline, avx2, avx512 };

namespace detail {

inline InstructionSet widest_instruction_set() {
#if defined(__x86_64__)
    const char* asked = std::getenv("OPWRIGHT_SIMD");
    const std::string_view at_most = asked ? asked : "";
    // Every processor with AVX2 and FMA also has F16C, which not every compiler can query.
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx512 && at_most != "avx2" && at_most != "baseline") return InstructionSet::avx512;
    if (avx2 && at_most != "baseline") return InstructionSet::avx2;
#endif
    return InstructionSet::baseline;
}

// Vector operations are inlined here, into functions that are compiled for their instruction set.
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

// The size of a vector in bytes.
inline int vector_bytes(InstructionSet set) {
    return set == InstructionSet::avx512 ? 64 : set == InstructionSet::avx2 ? 32 : 16;
}

// Calls job.run<bytes>(begin, end) with the vector width of this processor. The job is a class with
//
//     template <int bytes>
//     OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const;
//
// The processor must support `set`.
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

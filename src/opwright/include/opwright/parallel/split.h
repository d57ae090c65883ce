// Runs a job in PyTorch's threads.
#pragma once

#include <opwright/simd/instruction_set.h>
#include <opwright/visibility.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// For fewer elements, waking a thread is not worthwhile.
inline constexpr std::int64_t elements_per_thread = 1 << 14;

// Runs a job of opwright/simd.h from 0 to `size`, in independent parts of at least `grain`.
template <class Job>
void run_in_parallel(const Job& job, std::int64_t size, std::int64_t grain) {
    if (size <= grain) {
        simd::run(job, 0, size);
        return;
    }
    torch::stable::parallel_for(0, size, grain,
                                [&](std::int64_t begin, std::int64_t end) { simd::run(job, begin, end); });
}

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

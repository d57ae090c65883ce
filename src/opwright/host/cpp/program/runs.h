// Runs requests concurrently and repeatedly, and times them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "opwright/host.h"
#include "program/options.h"
#include "program/requests.h"

namespace opwright::host {

struct Answer {
    std::vector<at::Tensor> outputs;
    std::optional<Error> error;
    bool repeats = true;  // whether every further run returned the same bits
};

struct Runs {
    std::vector<double> seconds;      // of each run with a result, in no particular order
    double first_result_seconds = 0;  // from the start to the end of the first run, including the warm-up
    size_t runners = 0;               // the number of threads that ran; fewer than requested if no more were available
    double wall_seconds = 0;          // of all runs together after the warm-up, including reading their inputs
    int64_t resident_bytes_before = 0;  // of this process, after the warm-up
    int64_t resident_bytes_after = 0;
};

// Calls `take`, which must not throw, with each request's answer as soon as it has run `options.repeat` times, one call
// at a time; the answer is not kept after that. A request that cannot be read also gets an answer. Throws Error if the
// first request loses the GPU in the warm-up.
Runs run_all(const Model& model, const std::vector<Request>& requests, const Options& options,
             const std::function<void(const Request&, Answer&)>& take);

}  // namespace opwright::host

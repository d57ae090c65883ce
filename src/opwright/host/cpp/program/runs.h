// Runs of requests: some at a time, several times over, timed.
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
    bool repeats = true;  // whether each further run gave the same bits
};

struct Runs {
    std::vector<double> seconds;        // of each run that gave a result, in no order
    double first_result_seconds = 0;    // from the start to the end of the first run, the warm-up's too
    size_t runners = 0;                 // how many threads computed: fewer than asked for where there were no more
    double wall_seconds = 0;            // of all runs together after the warm-up, and of reading what they need
    int64_t resident_bytes_before = 0;  // of this process, after the warm-up
    int64_t resident_bytes_after = 0;
};

// Calls `take`, which throws nothing, with each request's answer as soon as it has run `options.repeat` times, one call
// at a time; nothing of it is kept after that. A request that cannot be read is an answer too. Throws Error if the
// first request loses the GPU in the warm-up.
Runs run_all(const Model& model, const std::vector<Request>& requests, const Options& options,
             const std::function<void(const Request&, Answer&)>& take);

}  // namespace opwright::host

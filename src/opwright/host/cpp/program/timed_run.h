// Runs the model and times it.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <vector>

#include "engine/device.h"
#include "engine/reason.h"
#include "opwright/host.h"

namespace opwright::host {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct TimedRun {
    std::vector<at::Tensor> outputs;
    double seconds = 0;  // of the model only
};

// Throws Error.
inline TimedRun run_timed(const Model& model, const std::vector<at::Tensor>& inputs) {
    const auto start = std::chrono::steady_clock::now();
    TimedRun run{.outputs = model.run(inputs)};
    // Until then, a GPU kernel may still be running and may fail.
    try {
        for (const at::Tensor& output : run.outputs) wait_for(output.device());
    } catch (const std::exception& error) {
        throw Error(Code::run_failed, "the model failed on these inputs: " + reason(error));
    }
    run.seconds = seconds_since(start);
    return run;
}

}  // namespace opwright::host

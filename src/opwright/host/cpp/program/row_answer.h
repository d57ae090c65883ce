// The answer to a row of a stream's request: its outputs as they lie in memory, or its error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "opwright/host.h"

namespace opwright::host {

struct RowAnswer {
    size_t request = 0, row = 0;        // places in the stream, and in the batch
    bool is_last = false;               // of the request
    std::vector<at::Tensor> outputs{};  // as `numpy_values` gives them
    double seconds = 0;                 // of the run that gave them
    std::optional<Error> error = std::nullopt;
};

// A line of JSON, and the bytes of the outputs. Throws std::system_error where they cannot be written.
void write_answer(int file, const RowAnswer& answer, const Model& model);

}  // namespace opwright::host

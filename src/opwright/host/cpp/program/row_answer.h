// The answer to a row of a stream's request: the bytes of its outputs, or its error.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "opwright/host.h"

namespace opwright::host {

struct RowAnswer {
    size_t request = 0, row = 0;        // indices in the stream and in the batch
    bool is_last = false;               // of the request
    std::vector<at::Tensor> outputs{};  // as returned by `numpy_values`
    double seconds = 0;                 // of the run that computed them
    std::optional<Error> error = std::nullopt;
};

// Writes a line of JSON and the bytes of the outputs. Throws std::system_error if writing fails.
void write_answer(int file, const RowAnswer& answer, const Model& model);

}  // namespace opwright::host

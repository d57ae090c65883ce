// The rows of a stream's request, which are computed together where they can be.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "opwright/host.h"
#include "program/row_answer.h"

namespace opwright::host {

// A row that has been read.
struct Row {
    std::string name;                // in messages
    std::vector<at::Tensor> inputs;  // in the order of the model's
    std::optional<Error> error;      // where it could not be read
};

// A request of a stream that has been read.
struct Batch {
    size_t number = 0;  // its place in the stream
    std::vector<Row> rows;
};

// Calls `take` with the answer to each row, in their order, as soon as it is there. What keeps rows from running
// together leaves each to run alone. Inputs are let go when they have been computed. Throws Error if the GPU is lost:
// any of the rows that have no answer by then may have caused it.
void compute_batch(const Model& model, Batch batch, const std::function<void(RowAnswer)>& take);

}  // namespace opwright::host

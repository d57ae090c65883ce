// Computes the rows of a stream's request, together if possible.
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

// A row after it has been read.
struct Row {
    std::string name;                // in messages
    std::vector<at::Tensor> inputs;  // in the order of the model's inputs
    std::optional<Error> error;      // if it could not be read
};

// A stream's request after it has been read.
struct Batch {
    size_t number = 0;  // its index in the stream
    std::vector<Row> rows;
};

// Calls `take` with the answer to each row, in order, as soon as it is available. Rows that cannot be computed together
// run one by one. Inputs are freed once they have been computed. Throws Error if the GPU is lost: any row without an
// answer by then may be the cause.
void compute_batch(const Model& model, Batch batch, const std::function<void(RowAnswer)>& take);

}  // namespace opwright::host

// Answers a stream of requests as they arrive: while one is computed, the next one is read and the previous answer is
// written.
#pragma once

#include <functional>

#include "opwright/host.h"

namespace opwright::host {

// Reads requests from the descriptor `in` to its end and writes answers to `out`. If `in` violates the format in
// docs/reference/host.md, throws Error after answering everything before it. Calls `exit_now`, which does not
// return, with an error if the reader of the answers is gone, because the model may be computing and never finish; and
// if the GPU is lost, which leaves that request and all later ones without an answer.
void answer_stream(const Model& model, int in, int out, const std::function<void(const Error&)>& exit_now);

}  // namespace opwright::host

// A stream of requests, which are answered as they arrive: the next one is read while one is computed, and the answer
// to the last one written.
#pragma once

#include <functional>

#include "opwright/host.h"

namespace opwright::host {

// Reads requests from the descriptor `in` to its end and writes answers to `out`. Throws Error, once everything before
// it is answered, where `in` is not what docs/host.md says. Calls `end_at_once`, which does not return, with an error
// where nobody reads the answers any more: a model may be computing then, and never end. And where the GPU is lost,
// which leaves that request and all after it without an answer.
void answer_stream(const Model& model, int in, int out, const std::function<void(const Error&)>& end_at_once);

}  // namespace opwright::host

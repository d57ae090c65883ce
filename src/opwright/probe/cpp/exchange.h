// The probe's input and output files, requests and responses, in the format of torch.save.
//
// A tensor whose dtype these archives do not support (uint16, float8 and others) is replaced by a tuple: a marker, the
// dtype's name in Python, and the same memory as integers.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace opwright::probe {

using Arguments = std::vector<c10::IValue>;

struct Response {
    std::vector<c10::IValue> outputs;
    std::vector<c10::IValue> gradients;
    std::string error;
};

// The positional arguments of each call. Throws Error.
std::vector<Arguments> read_requests(const std::string& path);

// Writes `path` completely or not at all. Throws Error.
void write_responses(const std::vector<Response>& responses, const std::string& path);

// The values of nested tuples and lists, in order. Throws std::runtime_error for other containers.
std::vector<c10::IValue> flatten(const c10::IValue& value);

// A value of a response in the form in which it is written. Throws std::runtime_error for a tensor that is not strided
// or has no storage.
c10::IValue encoded(const c10::IValue& value);

}  // namespace opwright::probe

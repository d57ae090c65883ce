// The two files through which another process asks and is answered: both are torch.save's archives.
//
// Of tensors whose dtype these archives do not know (uint16, float8 and others) the bits travel: in the tensor's place
// there is a tuple of a marker, the dtype's name in Python, and the same memory as integers.
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

// Throws Error; `path` is written whole or not at all.
void write_responses(const std::vector<Response>& responses, const std::string& path);

// Values one by one: what tuples and lists hold takes their place. Throws std::runtime_error for other containers.
std::vector<c10::IValue> flatten(const c10::IValue& value);

// A response's value as it can be written. Throws std::runtime_error for tensors that are more than strided memory.
c10::IValue encoded(const c10::IValue& value);

}  // namespace opwright::probe

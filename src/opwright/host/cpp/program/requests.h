// Requests to a model: input tensors from files, and the output file.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "opwright/host.h"
#include "program/options.h"

namespace opwright::host {

struct InputFile {
    std::string name;                             // of the input; empty if not given
    std::string path;                             // if it is a file
    std::optional<uint64_t> size = std::nullopt;  // the number of bytes, if they come with the request
    std::string bytes = "";                       // those bytes
};

// Returns a name such as "the input file a.npy".
std::string name_in_messages(const InputFile& file);

struct Request {
    std::string name;    // in messages: its index in the list or the stream; empty for a single request
    std::string output;  // empty if it is not written
    std::vector<InputFile> inputs;
    std::optional<Error> error = std::nullopt;  // of a line that is not a request
};

// Returns the request of --input, or those of the list. Throws Error with `input_unreadable`.
std::vector<Request> read_requests(const Options& options);

// Parses the requests of a list. `path` names the list in messages, and paths in it are relative to `path`'s folder.
// Throws Error with `input_unreadable` if it is empty; a line that is not a request becomes a request with an error.
std::vector<Request> parse_requests(const std::string& path, std::string_view text);

// Returns the tensors of a request, in the order of the model's inputs and on its device. Throws Error.
std::vector<at::Tensor> read_inputs(const Request& request, const Model& model);

}  // namespace opwright::host

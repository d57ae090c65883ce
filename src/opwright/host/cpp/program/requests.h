// What is asked of a model: tensors from files, and where the answer goes.
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
    std::string name;                             // of the input; empty where it was not said
    std::string path;                             // where it is a file
    std::optional<uint64_t> size = std::nullopt;  // where its bytes come with the request, how many
    std::string bytes = "";                       // these
};

// Such as "the input file a.npy".
std::string name_in_messages(const InputFile& file);

struct Request {
    std::string name;    // in messages: its place in the list or the stream; empty for a lone one
    std::string output;  // empty where it is not to be written
    std::vector<InputFile> inputs;
    std::optional<Error> error = std::nullopt;  // of a line that says nothing of the kind
};

// Those of --input, or those of the list. Throws Error with `input_unreadable`.
std::vector<Request> read_requests(const Options& options);

// Those of a list. `path` names it in messages, and paths in it begin at `path`'s folder. Throws Error with
// `input_unreadable` where it holds none; a line that is no request is one with an error.
std::vector<Request> parse_requests(const std::string& path, std::string_view text);

// The tensors of a request, in the order of the model's inputs and on its device. Throws Error.
std::vector<at::Tensor> read_inputs(const Request& request, const Model& model);

}  // namespace opwright::host

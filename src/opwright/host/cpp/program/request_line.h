// A request as a line of JSON: one of a list, or one of a stream.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

#include "program/requests.h"

namespace opwright::host {

// A line such as {"inputs": {"image": "a.jpg"}, "output": "a.npz"}, into `request`. Paths in it begin at `folder`.
// Throws Error with `input_unreadable`.
void parse_line_of_list(std::string_view line, const std::filesystem::path& folder, Request& request);

// A line such as {"inputs": {"image": {"bytes": 20000}}}, or {"batch": [...]} with such rows. The rows have names for
// messages; a row with a file name that cannot be one is a row with an error. Throws Error with `input_unreadable` for
// a line that does not say how many bytes follow it. `number` is the request's place in the stream.
std::vector<Request> parse_line_of_stream(std::string_view line, size_t number);

}  // namespace opwright::host

// Parses a request from a line of JSON in a list or a stream.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

#include "program/requests.h"

namespace opwright::host {

// Parses a line such as {"inputs": {"image": "a.jpg"}, "output": "a.npz"} into `request`. Its paths are relative to
// `folder`. Throws Error with `input_unreadable`.
void parse_line_of_list(std::string_view line, const std::filesystem::path& folder, Request& request);

// Parses a line such as {"inputs": {"image": {"bytes": 20000}}}, or {"batch": [...]} with such rows. The rows have
// names for messages; a row with an invalid file name becomes a row with an error. Throws Error with `input_unreadable`
// if the line does not determine how many bytes follow it. `number` is the request's index in the stream.
std::vector<Request> parse_line_of_stream(std::string_view line, size_t number);

}  // namespace opwright::host

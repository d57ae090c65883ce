// Reduces errors to one line, including PyTorch's multi-line messages.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "opwright/host/error.h"

namespace opwright::host {

// The prefix of this program's error lines. Each program that links the engine defines its own: "host" for the host,
// "probe" for the probe.
extern const char* const program_name;

// The line of PyTorch's message that states the error.
std::string reason(const std::exception& error);

// The same for the exception being handled, of any type.
std::string current_exception_reason();

// The exception being handled. Any other type becomes an Error with `code`, whose message starts with `what`.
Error current_error(Code code, const std::string& what = "");

// The error that `function` throws, converted from any type; nullopt if it does not throw.
template <typename Function>
std::optional<Error> error_of(Code code, const std::string& what, const Function& function) {
    try {
        function();
        return std::nullopt;
    } catch (...) {
        return current_error(code, what);
    }
}

// Throws Error with `file_missing` unless `path` is a file. `what` describes the file in the message.
void require_file(const std::string& what, const std::string& path);

// Prints "<program_name>: <message>" to standard error, as the last line of a failing program.
void print_failure(const std::string& message);

}  // namespace opwright::host

// What went wrong, in one line, also where PyTorch reports it in many.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "opwright/host/error.h"

namespace opwright::host {

// What this program's error lines begin with. Each program that is linked with the engine defines its own: the host is
// "host", the probe is "probe".
extern const char* const program_name;

// The line of PyTorch's message that says what is wrong.
std::string reason(const std::exception& error);

// The same for the exception that is being handled, of whatever type it is.
std::string current_exception_reason();

// The exception that is being handled. What is no Error becomes one with `code`, whose message begins with `what`.
Error current_error(Code code, const std::string& what = "");

// The error that `function` throws, of whatever type; none where it does not.
template <typename Function>
std::optional<Error> error_of(Code code, const std::string& what, const Function& function) {
    try {
        function();
        return std::nullopt;
    } catch (...) {
        return current_error(code, what);
    }
}

// Throws Error with `file_missing` unless `path` is a file. `what` names the file's role in the message.
void require_file(const std::string& what, const std::string& path);

// Prints "<program_name>: <message>" to standard error, the last line of a program that fails.
void print_failure(const std::string& message);

}  // namespace opwright::host

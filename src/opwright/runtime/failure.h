// What ends this program: one line that says why, and an exit code of its own.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace host {

enum Exit {
    wrong_usage = 2,
    missing_file = 3,
    broken_model = 4,
    missing_operator = 5,
    broken_requests = 6,
    library_does_not_load = 7,
    operators_refused = 8,
    responses_not_written = 9,
};

struct Failure : std::runtime_error {
    Failure(Exit code, const std::string& message) : std::runtime_error(message), code(code) {}
    Exit code;
};

// Of what PyTorch reports, the line that says what is wrong.
std::string reason(const std::exception& error);

// The same of the exception that is being handled, of whatever type it is.
std::string reason_of_current();

void must_be_a_file(const std::string& what, const std::string& path);

// The last line that this program prints on standard error.
void print_failure(const std::string& message);

}  // namespace host

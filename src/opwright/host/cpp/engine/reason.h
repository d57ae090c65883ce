// What went wrong, in one line, also where PyTorch says it in many.
#pragma once

#include <exception>
#include <string>

namespace opwright::host {

// Of what PyTorch reports, the line that says what is wrong.
std::string reason(const std::exception& error);

// The same of the exception that is being handled, of whatever type it is.
std::string reason_of_current();

// Throws Error with `file_missing`. `what` says in the message which file it is.
void must_be_a_file(const std::string& what, const std::string& path);

// The last line that a program prints on standard error.
void print_failure(const std::string& message);

}  // namespace opwright::host

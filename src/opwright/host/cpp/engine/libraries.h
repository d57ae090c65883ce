// Operator libraries in this process, and what else is mapped into it.
#pragma once

#include <string>

namespace opwright::host {

// Opens the shared object, whose operators are then there until the end. Throws Error.
void open_library(const std::string& path);

// Libraries that were linked into this program registered their operators before `main` began. Throws Error.
void linked_libraries_must_have_registered();

// Whether a piece of Python is in this process.
bool python_is_mapped();

}  // namespace opwright::host

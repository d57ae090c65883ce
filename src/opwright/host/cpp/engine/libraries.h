// Operator libraries in this process, and what else is mapped into it.
#pragma once

#include <string>

namespace opwright::host {

// Opens the shared object for the rest of the process. While it opens, standard error is captured and std::terminate
// has a handler of the engine. Throws Error.
void open_library(const std::string& path);

// Throws Error if a library that was linked into this program failed to register its operators before `main` began.
void require_linked_libraries_registered();

// Whether a library of Python is mapped into this process.
bool python_is_mapped();

}  // namespace opwright::host

// Operator libraries in this process, and what else is mapped into it.
#pragma once

#include <string>

namespace opwright::host {

// Opens the shared object for the rest of the process. While it opens, standard error is captured and std::terminate
// has a handler of the engine. Throws Error.
void open_library(const std::string& path);

// The library that is being opened, or null. For handlers of signals, as the next one.
const char* library_being_opened();

// Undoes the capture of standard error while a library is being opened.
void show_standard_error();

// Throws Error if a library that was linked into this program failed to register its operators before `main` began.
void require_linked_libraries_registered();

// Whether a library of Python is mapped into this process.
bool python_is_mapped();

}  // namespace opwright::host

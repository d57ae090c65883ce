// Operator libraries and other objects that are mapped into this process.
#pragma once

#include <string>

namespace opwright::host {

// Opens the shared object for the lifetime of the process. Meanwhile, standard error is captured and std::terminate
// calls a handler of the engine. Throws Error.
void open_library(const std::string& path);

// The library that is being opened, or null. Like the next function, for signal handlers.
const char* library_being_opened();

// Undoes the capture of standard error while a library is being opened.
void show_standard_error();

// Throws Error if a library linked into this program failed to register its operators before `main`.
void require_linked_libraries_registered();

// Whether a Python library is mapped into this process.
bool python_is_mapped();

}  // namespace opwright::host

// Opens a bundle's operator libraries once per process, and compares them with the schemas that the bundle recorded.
#pragma once

#include <filesystem>

#include "bundle/manifest.h"

namespace opwright::host {

// Throws Error with `namespace_taken` if a namespace of the bundle's libraries is already in this process, unless the
// same library registered it for another bundle. Opens nothing.
void require_free_namespaces(const Manifest& manifest);

// Opens the libraries that this process has not opened yet. Throws Error.
void open_libraries(const std::filesystem::path& folder, const Manifest& manifest);

// Checks that every recorded schema is registered unchanged, and that what the model calls has a kernel for the device.
// Throws Error with `operator_missing`, `schema_changed` or `kernel_missing`.
void check_operators(const Manifest& manifest);

}  // namespace opwright::host

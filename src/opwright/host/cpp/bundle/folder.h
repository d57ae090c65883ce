// Checks the folder of a bundle against its manifest. Does not depend on PyTorch.
#pragma once

#include <filesystem>
#include <string>

#include "bundle/manifest.h"

namespace opwright::host {

// Reads manifest.json, compares it with manifest.sha256, and parses it. Throws Error.
Manifest read_manifest(const std::filesystem::path& folder);

// Which files have their digests checked. `host` covers what BUNDLE/run is about to execute. A process that runs the
// program in host/ does not read those hundreds of megabytes again: `all_but_host` covers what it opens itself.
enum class Part { all, host, all_but_host };

// Whether this process is the bundle's own program, for which BUNDLE/run has already checked host/.
bool is_own_program(const std::filesystem::path& folder, const Manifest& manifest);

// Checks that every file in the manifest exists with its size and, in `part`, its digest, and that the folder contains
// no other files and no links. Throws Error with `file_missing`, `file_unexpected`, `file_changed` or `path_outside`.
void check_files(const std::filesystem::path& folder, const Manifest& manifest, Part part);

}  // namespace opwright::host

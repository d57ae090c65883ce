// The folder of a bundle: what lies in it has to be what its manifest says. Without PyTorch.
#pragma once

#include <filesystem>
#include <string>

#include "bundle/manifest.h"

namespace opwright::host {

// Reads manifest.json, compares it with manifest.sha256, and parses it. Throws Error.
Manifest read_manifest(const std::filesystem::path& folder);

// Which files have their digests compared. `host` is what BUNDLE/run is about to execute. A process that runs the
// program in host/ need not read these hundreds of megabytes again: `all_but_host` is all that it opens itself.
enum class Part { all, host, all_but_host };

// Whether this process runs the bundle's own program: BUNDLE/run has checked host/ before it began.
bool is_own_program(const std::filesystem::path& folder, const Manifest& manifest);

// Each file that the manifest lists is there, with its size and, in `part`, its digest, and nothing else is; there are
// no links. Throws Error with `file_missing`, `file_unexpected`, `file_changed` or `path_outside`.
void check_files(const std::filesystem::path& folder, const Manifest& manifest, Part part);

}  // namespace opwright::host

// The folder of a bundle: what lies in it has to be what its manifest says. Without PyTorch.
#pragma once

#include <filesystem>
#include <string>

#include "bundle/manifest.h"

namespace opwright::host {

// Reads manifest.json, compares it with manifest.sha256, and parses it. Throws Error.
Manifest read_manifest(const std::filesystem::path& folder);

// Which files have their digests compared. A self-contained bundle has hundreds of megabytes of PyTorch in host/:
// they are read by whoever is about to execute them, and not by a host that brings its own.
enum class Part { all, host, all_but_host };

// Each file that the manifest lists is there, with its size and, in `part`, its digest, and nothing else is; there are
// no links. Throws Error with `file_missing`, `file_unexpected`, `file_changed` or `path_outside`.
void check_files(const std::filesystem::path& folder, const Manifest& manifest, Part part);

}  // namespace opwright::host

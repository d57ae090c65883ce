// The features of this machine's processor, queried from the processor itself without any system files.
#pragma once

#include <string>

#include "bundle/manifest.h"

namespace opwright::host {

// Throws Error with `cpu_unsupported` if the bundle's machine code needs a feature that this processor lacks.
void check_processor(const Manifest& manifest);

// `name` is as in Linux's /proc/cpuinfo. Returns false for an unknown name.
bool has_feature(const std::string& name);

}  // namespace opwright::host

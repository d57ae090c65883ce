// What the processor of this machine can do, asked of the processor itself: no file of the system is needed.
#pragma once

#include <string>

#include "bundle/manifest.h"

namespace opwright::host {

// Throws Error with `cpu_unsupported` where the machine code of the bundle needs what this processor lacks.
void check_processor(const Manifest& manifest);

// As Linux names it in /proc/cpuinfo. What is unknown here is not there.
bool has_feature(const std::string& name);

}  // namespace opwright::host

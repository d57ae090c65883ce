// The device that a bundle was made for.
#pragma once

#include "bundle/manifest.h"

namespace opwright::host {

// Throws Error with `device_unavailable`.
void check_device(const Manifest& manifest);

}  // namespace opwright::host

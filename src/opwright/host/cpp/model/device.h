// The device that a bundle was shipped for.
#pragma once

#include "bundle/manifest.h"

namespace opwright::host {

// Throws Error with `device_unavailable`.
void check_device(const Manifest& manifest);

// Prevents cuDNN and cuBLAS from rounding to TF32, which PyTorch may allow: the goldens were computed without TF32.
// Applies to the whole process, from this call on.
void compute_in_whole_float32();

}  // namespace opwright::host

// The device that a bundle was made for.
#pragma once

#include "bundle/manifest.h"

namespace opwright::host {

// Throws Error with `device_unavailable`.
void check_device(const Manifest& manifest);

// GPUs round the numbers that cuDNN and cuBLAS multiply to TF32 where PyTorch allows it, and the goldens were computed
// without. From here on it allows neither. For the whole process.
void compute_in_whole_float32();

}  // namespace opwright::host

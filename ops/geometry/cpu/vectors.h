// opwright's vectors, which load and store PyTorch's bfloat16.
#pragma once

#include <opwright/parallel/dtypes.h>
#include <opwright/simd.h>

#include "../elements.h"

namespace geometry {

namespace simd = opwright::simd;

}  // namespace geometry

// Initializes PyTorch's math library, whose own initialization is not thread-safe.
#pragma once

namespace opwright::probe {

// Calls a few functions in this thread alone. MKL selects its kernels at the first call; if several threads make that
// call concurrently, some results of sqrt, exp and others lose precision.
void initialize_math_library();

}  // namespace opwright::probe

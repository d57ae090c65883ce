// PyTorch's math library, whose own initialization is not thread-safe.
#pragma once

namespace opwright::probe {

// Call a few functions in this thread alone. At its first call MKL selects its kernels; if that call comes from several
// threads at once, some results of sqrt, exp and others have only part of their precision.
void initialize_math_library();

}  // namespace opwright::probe

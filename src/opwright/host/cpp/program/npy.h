// NumPy's file of one array: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace opwright::host {

// The array in `bytes`, copied. `what` says in messages where they come from. Throws Error with `input_unreadable`.
at::Tensor read_npy(const std::string& what, std::string_view bytes);

// The values of `tensor` as NumPy has them: in the memory of the processor, one element behind the other; bfloat16 and
// float8 become float32. The memory may be that of `tensor`. Throws Error with `output_unwritable` for a tensor that is
// sparse, and for dtypes that have no counterpart.
at::Tensor numpy_values(const at::Tensor& tensor);

// The bytes of a file that holds the values. Throws Error as above.
std::string write_npy(const at::Tensor& tensor);

}  // namespace opwright::host

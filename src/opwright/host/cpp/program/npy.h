// NumPy's file of one array: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace opwright::host {

// The array in `bytes`, copied. `what` says in messages where they come from. Throws Error with `input_unreadable`.
at::Tensor read_npy(const std::string& what, std::string_view bytes);

// The bytes of a file that holds `tensor`; bfloat16 and float8 become float32, which NumPy has. Throws Error with
// `output_unwritable` for dtypes that have no counterpart.
std::string write_npy(const at::Tensor& tensor);

}  // namespace opwright::host

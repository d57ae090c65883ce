// NumPy's file format for one array: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace opwright::host {

bool is_npy(std::string_view bytes);

// Returns a copy of the array in `bytes`. `what` describes their source in messages. Throws Error with
// `input_unreadable`.
at::Tensor read_npy(const std::string& what, std::string_view bytes);

// The values of `tensor` as NumPy represents them: row-major in host memory, with bfloat16 and float8 converted to
// float32. The result may share the memory of `tensor`. Throws Error with `output_unwritable` for sparse tensors and
// for dtypes without a counterpart.
at::Tensor numpy_values(const at::Tensor& tensor);

// The bytes of a file with these values. Throws Error as above.
std::string write_npy(const at::Tensor& tensor);

}  // namespace opwright::host

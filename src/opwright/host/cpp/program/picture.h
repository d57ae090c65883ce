// Converts photographs to tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "opwright/host/shape.h"

namespace opwright::host {

bool is_picture(std::string_view bytes);

// Decodes a JPEG or PNG to uint8 (height, width, 3), in RGB order. Ignores the orientation in the file. `what`
// describes the source of the bytes in messages. Throws Error with `input_unreadable`.
at::Tensor decode_picture(const std::string& what, std::string_view bytes);

// Converts uint8 (height, width, 3) to float32 (1, 3, crop height, crop width), as docs/reference/format.md describes.
// `what` and Error as above.
at::Tensor prepared(const std::string& what, const at::Tensor& picture, const ImageRecipe& recipe);

}  // namespace opwright::host

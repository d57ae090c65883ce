// Photographs as tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "opwright/host/shape.h"

namespace opwright::host {

bool is_picture(std::string_view bytes);

// A JPEG or PNG as uint8 (height, width, 3), red first. What a file says of its orientation is not followed. `what`
// says in messages where the bytes come from. Throws Error with `input_unreadable`.
at::Tensor decode_picture(const std::string& what, std::string_view bytes);

// From uint8 (height, width, 3) to float32 (1, 3, crop height, crop width), as docs/format.md says. `what` and Error as
// above.
at::Tensor prepared(const std::string& what, const at::Tensor& picture, const ImageRecipe& recipe);

}  // namespace opwright::host

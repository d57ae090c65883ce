// JPEG and PNG pictures, and their conversion to inputs.
#include "program/picture.h"

#include <algorithm>
#include <array>

#include "tests/fuzz/image.h"
#include "tests/fuzz/target.h"

namespace opwright::fuzz {
namespace {

// Wide, tall, and as small as possible.
const std::array<ImageRecipe, 3> recipes{ImageRecipe{8, 3, 8, {0.5, 0, -1}, {1, 2.5, -3}},
                                         ImageRecipe{9, 9, 1, {}, {1e-300, 1e300, 1}},
                                         ImageRecipe{1, 1, 1, {}, {1, 1, 1}}};
// A thin picture becomes a long one, which only costs time and memory.
constexpr int64_t longest = 2048;

std::string read_picture(std::string_view input) {
    return outcome_of({Code::input_unreadable}, [input] {
        const std::string what = "the input file x.png";
        if (!host::is_picture(input)) return;
        const at::Tensor picture = host::decode_picture(what, input);
        require(picture.dim() == 3 && picture.size(2) == 3 && picture.numel() > 0,
                "a picture with an unexpected shape");
        const int64_t longer = std::max(picture.size(0), picture.size(1));
        if (longer > longest) return;
        for (const ImageRecipe& recipe : recipes) {
            const at::Tensor ready = host::prepared(what, picture, recipe);
            const std::array<int64_t, 4> wanted{1, 3, recipe.crop_height, recipe.crop_width};
            require(ready.sizes() == c10::IntArrayRef(wanted), "an input with an unexpected shape");
        }
    });
}

}  // namespace

const Target picture{"picture", read_picture, changed_image};

}  // namespace opwright::fuzz

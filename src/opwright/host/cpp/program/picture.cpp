#include "program/picture.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <png.h>
#include <turbojpeg.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "program/unreadable.h"

namespace opwright::host {
namespace {

constexpr std::string_view jpeg_start = "\xff\xd8\xff";
constexpr std::string_view png_start = "\x89PNG\r\n\x1a\n";
constexpr int64_t most_pixels = int64_t{1} << 30;

at::Tensor empty_picture(const std::string& what, int64_t height, int64_t width) {
    if (height < 1 || width < 1 || height > most_pixels / width) refuse_input(what, "it has no pixels, or too many");
    return at::empty({height, width, 3}, at::kByte);
}

at::Tensor decode_jpeg(const std::string& what, std::string_view bytes) {
    const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    int width = 0, height = 0, subsampling = 0, colours = 0;
    if (tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &subsampling, &colours) != 0)
        refuse_input(what, tjGetErrorStr2(decoder.get()));
    at::Tensor picture = empty_picture(what, height, width);
    if (tjDecompress2(decoder.get(), data, bytes.size(), picture.mutable_data_ptr<uint8_t>(), width, 0, height,
                      TJPF_RGB, TJFLAG_ACCURATEDCT) != 0)
        refuse_input(what, tjGetErrorStr2(decoder.get()));
    return picture;
}

at::Tensor decode_png(const std::string& what, std::string_view bytes) {
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    const std::unique_ptr<png_image, void (*)(png_imagep)> freed(&image, png_image_free);
    if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size())) refuse_input(what, image.message);
    image.format = PNG_FORMAT_RGB;
    at::Tensor picture = empty_picture(what, image.height, image.width);
    const png_color black = {0, 0, 0};
    if (!png_image_finish_read(&image, &black, picture.mutable_data_ptr<uint8_t>(), 0, nullptr))
        refuse_input(what, image.message);
    return picture;
}

// Half of the remainder, rounded half to even, as Python rounds.
int64_t margin(int64_t size, int64_t cut) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(size - cut) / 2));
}

at::Tensor of_channels(const std::array<double, 3>& values) {
    return at::tensor({values[0], values[1], values[2]}, at::kFloat).view({1, 3, 1, 1});
}

}  // namespace

bool is_picture(std::string_view bytes) {
    return bytes.starts_with(jpeg_start) || bytes.starts_with(png_start);
}

at::Tensor decode_picture(const std::string& what, std::string_view bytes) {
    return within_memory(
        what, [&] { return bytes.starts_with(png_start) ? decode_png(what, bytes) : decode_jpeg(what, bytes); });
}

at::Tensor prepared(const std::string& what, const at::Tensor& picture, const ImageRecipe& recipe) {
    const int64_t height = picture.size(0), width = picture.size(1), shorter = std::min(height, width);
    const int64_t longer = recipe.resize * std::max(height, width) / shorter;
    const std::array<int64_t, 2> size{height <= width ? recipe.resize : longer,
                                      height <= width ? longer : recipe.resize};
    if (longer > most_pixels / recipe.resize)
        refuse_input(what,
                     "it has too many pixels once its shorter side is resized to " + std::to_string(recipe.resize));
    return within_memory(what, [&] {
        // Permute while the values are bytes: moving floats is ten times slower.
        at::Tensor values = picture.permute({2, 0, 1}).unsqueeze(0).contiguous().to(at::kFloat).div_(255);
        values = at::_upsample_bilinear2d_aa(values, size, false);
        const int64_t top = margin(size[0], recipe.crop_height), left = margin(size[1], recipe.crop_width);
        values = values.narrow(2, top, recipe.crop_height).narrow(3, left, recipe.crop_width);
        return values.sub(of_channels(recipe.mean)).div(of_channels(recipe.std)).contiguous();
    });
}

}  // namespace opwright::host

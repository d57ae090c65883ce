// The checks of arguments that all devices share, and the layouts that kernels read and write.
#pragma once

#include <opwright/check.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "elements.h"
#include "options.h"

namespace geometry {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::MemoryFormat;
using opwright::ScalarType;
using opwright::Tensor;

constexpr std::array<std::string_view, 3> interpolation_names{"nearest", "bilinear", "bicubic"};
constexpr std::array<std::string_view, 3> padding_names{"constant", "border", "reflection"};

constexpr int64_t max_side = int64_t{1} << 30;

template <class Choice, std::size_t count>
Choice chosen(std::string_view name, const std::array<std::string_view, count>& names, std::string_view argument) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
        if (names[i] == name) return static_cast<Choice>(i);
        all += (i > 0 ? ", " : "") + std::string(names[i]);
    }
    opwright::detail::fail(argument, " must be one of ", all, ", got '", name, "'");
}

inline Options checked_options(const Tensor& image, int64_t height, int64_t width, std::string_view interpolation,
                               std::string_view padding, double fill) {
    OPWRIGHT_CHECK(height >= 1 && height <= max_side, "height must be 1 to ", max_side, ", got ", height);
    OPWRIGHT_CHECK(width >= 1 && width <= max_side, "width must be 1 to ", max_side, ", got ", width);
    const Options options{height, width, chosen<Interpolation>(interpolation, interpolation_names, "interpolation"),
                          chosen<Padding>(padding, padding_names, "padding"), fill};
    if (image.scalar_type() == ScalarType::Byte) check::finite(fill, "fill of a uint8 image");
    return options;
}

inline void check_tensors(const Tensor& image, const Tensor& homography, DeviceType device) {
    check::device(image, "image", device);
    check::dtype(image, "image", {ScalarType::Float, ScalarType::Double, ScalarType::BFloat16, ScalarType::Byte});
    check::rank(image, "image", 4);
    const int64_t rows = image.size(2), columns = image.size(3);
    OPWRIGHT_CHECK(rows >= 1 && rows <= max_side && columns >= 1 && columns <= max_side, "image must have 1 to ",
                   max_side, " rows and columns, got shape ", image.sizes());
    check::dtype(homography, "homography", {ScalarType::Float, ScalarType::Double});
    check::same_device(homography, "homography", image, "image");
    const auto sizes = homography.sizes();
    const std::size_t rank = sizes.size();
    const bool fits = (rank == 2 || rank == 3) && sizes[rank - 2] == 3 && sizes[rank - 1] == 3 &&
                      (rank == 2 || sizes[0] == 1 || sizes[0] == image.size(0));
    OPWRIGHT_CHECK(fits, "homography must have shape (3, 3), (1, 3, 3) or (N, 3, 3) for N images, got ", sizes,
                   " for an image of shape ", image.sizes());
}

inline void check_gradient(const Tensor& grad, const Tensor& image, const Options& options) {
    check::dtype(image, "image", {ScalarType::Float, ScalarType::Double, ScalarType::BFloat16});
    check::dtype(grad, "grad", image.scalar_type());
    check::same_device(grad, "grad", image, "image");
    check::sizes(grad, "grad", {image.size(0), image.size(1), options.height, options.width});
}

inline void check_wanted(const std::vector<bool>& wanted) {
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, for image and homography, got ", wanted.size());
}

// Whether the elements are stored in the order (N, H, W, C).
inline bool is_channels_last(const Tensor& image) {
    int64_t expected = 1;
    for (const int dimension : {1, 3, 2, 0}) {
        const int64_t size = image.size(dimension);
        if (size != 1 && image.stride(dimension) != expected) return false;
        expected *= size;
    }
    return true;
}

// The format of an image's result: that of the image, or row-major.
inline MemoryFormat result_format(const Tensor& image) {
    return !image.is_contiguous() && is_channels_last(image) ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
}

// The tensor in a format, without a copy if it already has it.
inline Tensor in_format(const Tensor& tensor, MemoryFormat format) {
    const bool has_it = format == MemoryFormat::ChannelsLast ? is_channels_last(tensor) : tensor.is_contiguous();
    return has_it ? tensor : torch::stable::contiguous(tensor, format);
}

// Does not use the tensor's own strides: those of dimensions of size 1 are arbitrary.
inline Layout layout_of(int64_t count, int64_t channels, int64_t rows, int64_t columns, MemoryFormat format) {
    if (format == MemoryFormat::ChannelsLast) {
        return {count, channels, rows, columns, rows * columns * channels, 1, columns * channels, channels};
    }
    return {count, channels, rows, columns, channels * rows * columns, rows * columns, columns, 1};
}

inline Tensor allocated(const Tensor& like, int64_t height, int64_t width, MemoryFormat format) {
    const std::array<int64_t, 4> sizes{like.size(0), like.size(1), height, width};
    int64_t bytes = static_cast<int64_t>(like.element_size());
    bool fits = true;
    for (const int64_t size : sizes) fits = !__builtin_mul_overflow(bytes, size, &bytes) && fits;
    OPWRIGHT_CHECK(fits, "the output must have fewer than 2^63 bytes, got shape ", sizes, " of ", like.scalar_type());
    std::optional<Tensor> fresh;
    try {
        fresh = torch::stable::empty(sizes, like.scalar_type(), std::nullopt, like.device(), std::nullopt, format);
    } catch (const std::runtime_error&) {  // torch's C interface drops the reason, but it can only be memory
    }
    OPWRIGHT_CHECK(fresh, "not enough memory for an output of shape ", sizes, " of ", like.scalar_type());
    return *std::move(fresh);
}

// Calls `act` with a value of the image's C++ element type.
template <class Act>
void with_floating_type_of(const Tensor& image, const Act& act) {
    switch (image.scalar_type()) {
        case ScalarType::Double:
            return act(double());
        case ScalarType::BFloat16:
            return act(BFloat16());
        default:
            return act(float());
    }
}

template <class Act>
void with_type_of(const Tensor& image, const Act& act) {
    if (image.scalar_type() == ScalarType::Byte) return act(uint8_t());
    return with_floating_type_of(image, act);
}

template <class Act>
void with_taps_of(Interpolation interpolation, const Act& act) {
    switch (interpolation) {
        case Interpolation::nearest:
            return act(std::integral_constant<int, 1>());
        case Interpolation::bilinear:
            return act(std::integral_constant<int, 2>());
        case Interpolation::bicubic:
            return act(std::integral_constant<int, 4>());
    }
}

}  // namespace geometry

// Converts between Tensor and cv::Mat over the same memory, without copying pixels in either direction.
//
//   (H, W)     a Mat of H rows and W columns with one channel
//   (H, W, C)  a Mat of H rows and W columns with C channels, 1 to CV_CN_MAX
//
// Rows may have gaps between them (a crop, every second row); within a row, pixels and channels must be adjacent.
#pragma once

#include <opwright/check.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <opencv2/core.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace opwright OPWRIGHT_HIDDEN {

/// The depth (CV_8U, CV_32F, ...) of `dtype`, or nullopt if OpenCV has none (bool, int64, complex, ...).
inline std::optional<int> mat_depth(ScalarType dtype) {
    switch (dtype) {
        case ScalarType::Byte:
            return CV_8U;
        case ScalarType::Char:
            return CV_8S;
        case ScalarType::UInt16:
            return CV_16U;
        case ScalarType::Short:
            return CV_16S;
        case ScalarType::Int:
            return CV_32S;
        case ScalarType::Float:
            return CV_32F;
        case ScalarType::Double:
            return CV_64F;
        case ScalarType::Half:
            return CV_16F;
        default:
            return std::nullopt;
    }
}

/// The dtype of a Mat of `depth`; the inverse of `mat_depth`.
inline ScalarType mat_dtype(int depth) {
    constexpr std::array dtypes{ScalarType::Byte, ScalarType::Char,  ScalarType::UInt16, ScalarType::Short,
                                ScalarType::Int,  ScalarType::Float, ScalarType::Double, ScalarType::Half};
    static_assert(CV_8U == 0 && CV_8S == 1 && CV_16U == 2 && CV_16S == 3 && CV_32S == 4 && CV_32F == 5 && CV_64F == 6 &&
                  CV_16F == 7);
    return dtypes.at(static_cast<std::size_t>(depth));
}

/// OpenCV's layout of (height, width) or (height, width, channels) in memory. Cheap, and independent of the pointer.
struct MatLayout {
    int rows = 0;
    int cols = 0;
    int type = 0;                    // depth and channels, as CV_MAKETYPE packs them
    std::size_t step = 0;            // bytes from one row to the next
    const char* obstacle = nullptr;  // why no Mat can share this memory; null if one can

    explicit operator bool() const { return obstacle == nullptr; }

    cv::Mat over(void* data) const { return {rows, cols, type, data, step}; }

    /// OpenCV has no Mat of const elements: the caller must not write to it.
    const cv::Mat over(const void* data) const { return over(const_cast<void*>(data)); }
};

/// The layout for the given sizes and strides (in elements); dimensions of size 1 may have any stride.
inline MatLayout mat_layout(HeaderOnlyArrayRef<int64_t> sizes, HeaderOnlyArrayRef<int64_t> strides, ScalarType dtype) {
    const auto refused = [](const char* obstacle) { return MatLayout{.obstacle = obstacle}; };
    const std::optional<int> depth = mat_depth(dtype);
    if (!depth) {
        return refused("a Mat holds uint8, int8, uint16, int16, int32, float16, float32 or float64: convert it first");
    }
    if (sizes.size() != 2 && sizes.size() != 3) {
        return refused(
            "a Mat must be (height, width) or (height, width, channels): select, unsqueeze or flatten first");
    }
    const int64_t rows = sizes[0];
    const int64_t cols = sizes[1];
    const int64_t channels = sizes.size() == 3 ? sizes[2] : 1;
    static_assert(CV_CN_MAX == 512, "the message below says 512");
    if (channels < 1 || channels > CV_CN_MAX) {
        return refused("a Mat has 1 to 512 channels: split or permute the last dimension first");
    }
    if (rows > INT_MAX || cols > INT_MAX) {
        return refused("a Mat has at most 2147483647 rows and columns: split it first");
    }
    const int64_t row = cols * channels;
    const bool has_pixels = rows > 0 && cols > 0;
    if (has_pixels && channels > 1 && strides[2] != 1) {
        return refused("the channels of a pixel must be adjacent (last stride 1): call contiguous() first");
    }
    if (has_pixels && cols > 1 && strides[1] != channels) {
        return refused("the pixels of a row must be adjacent (second stride = channels): call contiguous() first");
    }
    if (has_pixels && rows > 1 && strides[0] < row) {
        return refused("rows must not overlap (first stride >= width * channels): call contiguous() first");
    }
    const int type = CV_MAKETYPE(*depth, static_cast<int>(channels));
    const int64_t step = has_pixels && rows > 1 ? strides[0] : row;
    return {.rows = static_cast<int>(rows),
            .cols = static_cast<int>(cols),
            .type = type,
            .step = static_cast<std::size_t>(step) * CV_ELEM_SIZE1(type)};
}

namespace detail {

inline MatLayout checked_mat_layout(const Tensor& tensor) {
    OPWRIGHT_CHECK(tensor.is_cpu(), "a tensor must be on cpu for a cv::Mat to share its memory, got ", tensor.device(),
                   ": move it with .to('cpu') first");
    const ScalarType dtype = tensor.scalar_type();
    const MatLayout layout = mat_layout(tensor.sizes(), tensor.strides(), dtype);
    OPWRIGHT_CHECK(layout, "no cv::Mat can share the memory of a tensor of ", dtype, " with shape ", tensor.sizes(),
                   " and strides ", tensor.strides(), ": ", layout.obstacle);
    return layout;
}

}  // namespace detail

/// Whether a Mat can share the memory of `tensor`; if not, `torch::stable::contiguous(tensor)` may help.
inline bool fits_mat(const Tensor& tensor) {
    return tensor.is_cpu() && mat_layout(tensor.sizes(), tensor.strides(), tensor.scalar_type());
}

/// A read-only Mat over the pixels of `tensor`, which must outlive it. A copy-on-write tensor stays shared.
inline const cv::Mat mat_to_read(const Tensor& tensor) {
    return detail::checked_mat_layout(tensor).over(tensor.const_data_ptr());
}

/// A writable Mat over the pixels of `tensor`, which must outlive it.
inline cv::Mat mat_to_write(const Tensor& tensor) {
    return detail::checked_mat_layout(tensor).over(tensor.mutable_data_ptr());
}

/// A tensor over the pixels of `mat`: (rows, cols), or (rows, cols, channels) if it has more than one channel.
/// Its row stride is the Mat's step. The tensor keeps `owner`, any copyable object, until its memory is released: pass
/// the owner of the pixels, or a dummy if the caller guarantees their lifetime.
template <class Owner>
Tensor tensor_from(const cv::Mat& mat, Owner owner) {
    OPWRIGHT_CHECK(mat.dims <= 2, "a cv::Mat must have rows and columns for a tensor to share its memory, got ",
                   mat.dims, " dimensions: reshape it first");
    const int64_t channels = mat.channels();
    const std::array<int64_t, 3> sizes{mat.rows, mat.cols, channels};
    const std::array<int64_t, 3> strides{static_cast<int64_t>(mat.empty() ? mat.cols * mat.elemSize() : mat.step[0]) /
                                             static_cast<int64_t>(mat.elemSize1()),
                                         channels, 1};
    const std::size_t rank = channels == 1 ? 2 : 3;
    const Device cpu(DeviceType::CPU);
    return torch::stable::from_blob(mat.data, {sizes.data(), rank}, {strides.data(), rank}, cpu, mat_dtype(mat.depth()),
                                    [kept = std::move(owner)](void*) {});
}

/// The same for a Mat that owns its pixels or, like a crop, shares them with other Mats: the tensor shares them too.
inline Tensor tensor_from(const cv::Mat& mat) {
    OPWRIGHT_CHECK(mat.u != nullptr || mat.empty(),
                   "a cv::Mat must own its pixels for a tensor to keep them, and this one borrows them: clone() it, or "
                   "pass their owner with tensor_from(mat, owner)");
    return tensor_from(mat, mat);
}

/// Runs `body` and rethrows OpenCV errors as std::runtime_error, with one line that names the function that failed.
template <class Body>
decltype(auto) translate_opencv_errors(Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const cv::Exception& error) {
        throw std::runtime_error("OpenCV " CV_VERSION ", " + error.func + ": " + error.err);
    }
}

}  // namespace opwright OPWRIGHT_HIDDEN

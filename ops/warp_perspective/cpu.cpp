// The CPU kernel: OpenCV reads the image in place and writes directly into the result.
//
// All errors are detected before the result is allocated. OpenCV itself would return a blank image for a singular warp,
// wrap a huge border value around, and report an overlong image in terms of its internals.
#include <opwright/check.h>
#include <opwright/empty.h>
#include <opwright/op.h>
#include <opwright/opencv.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::MatLayout;
using opwright::ScalarType;
using opwright::Tensor;
using Sizes = opwright::HeaderOnlyArrayRef<int64_t>;

constexpr int64_t max_image_side = SHRT_MAX - 1;  // cv::remap stores whole coordinates in 16 bits
constexpr int64_t max_output_side = 1 << 30;      // OpenCV counts rows in int, and adds a block to them
constexpr int64_t scalar_channels = 4;            // a cv::Scalar; also the limit of cubic and Lanczos
// The minimum work per task.
constexpr int64_t pixels_per_task = 1 << 15;  // opwright: equivalent: only the speed depends on it

struct Choice {
    std::string_view name;
    int value;
};

constexpr std::array interpolations{Choice{"nearest", cv::INTER_NEAREST}, Choice{"linear", cv::INTER_LINEAR},
                                    Choice{"cubic", cv::INTER_CUBIC}, Choice{"lanczos", cv::INTER_LANCZOS4}};

constexpr std::array border_modes{Choice{"constant", cv::BORDER_CONSTANT}, Choice{"replicate", cv::BORDER_REPLICATE},
                                  Choice{"reflect", cv::BORDER_REFLECT}, Choice{"wrap", cv::BORDER_WRAP},
                                  Choice{"reflect_101", cv::BORDER_REFLECT_101}};

// ---- The part of OpenCV: pointers and Mats, without torch. ----

/// Images of one layout, warped into outputs of one layout.
struct Warps {
    MatLayout image;
    MatLayout output;
    int flags;
    int border_mode;
    cv::Scalar border_value;

    void operator()(const void* from, void* into, const cv::Matx33d& to_image) const {
        cv::Mat target = output.over(into);
        cv::warpPerspective(image.over(from), target, to_image, target.size(), flags | cv::WARP_INVERSE_MAP,
                            border_mode, border_value);
        // opwright: equivalent [;]: no call is known in which OpenCV does so
        if (target.data != into)
            throw std::logic_error("OpenCV did not write to the output but allocated other memory");
    }

    /// `count` images, `image_bytes` and `output_bytes` apart; one matrix for all of them, or one for each.
    void all(int64_t count, const std::byte* from, int64_t image_bytes, std::byte* into, int64_t output_bytes,
             const std::vector<cv::Matx33d>& to_image) const {
        const int64_t pixels = int64_t{output.rows} * output.cols;
        // opwright: equivalent: only the speed depends on it
        const int64_t grain = std::max<int64_t>(1, pixels_per_task / pixels);
        std::atomic<bool> has_failed = false;
        std::exception_ptr failure;
        torch::stable::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
            try {
                for (int64_t n = begin; n < end; ++n) {
                    (*this)(from + n * image_bytes, into + n * output_bytes, to_image[to_image.size() == 1 ? 0 : n]);
                }
            } catch (...) {  // torch's C interface would drop the exception
                // opwright: equivalent: no call is known in which OpenCV fails after the checks
                if (!has_failed.exchange(true)) failure = std::current_exception();
            }
        });
        if (failure) std::rethrow_exception(failure);
    }
};

bool is_finite(const cv::Matx33d& matrix) {
    return std::all_of(matrix.val, matrix.val + 9, [](double value) { return std::isfinite(value); });
}

/// Whether the determinant may be zero: it is within the rounding errors of its six products.
bool is_singular(const cv::Matx33d& m) {
    double determinant = 0;
    double magnitude = 0;
    for (int i = 0; i < 3; ++i) {
        const int j = (i + 1) % 3;
        const int k = (i + 2) % 3;
        const double plus = m(0, i) * m(1, j) * m(2, k);
        const double minus = m(0, i) * m(1, k) * m(2, j);
        determinant += plus - minus;
        magnitude += std::abs(plus) + std::abs(minus);
    }
    // opwright: equivalent [<]: if both are zero, cv::invert rejects the matrix
    return std::abs(determinant) <= 8 * std::numeric_limits<double>::epsilon() * magnitude;
}

// ---- The part of torch: arguments are checked, and converted to the above. ----

template <std::size_t count>
std::string names(const std::array<Choice, count>& choices) {
    std::string all;
    for (const Choice& choice : choices) all += (all.empty() ? "" : ", ") + std::string(choice.name);
    return all;
}

template <std::size_t count>
int chosen(std::string_view name, const std::array<Choice, count>& choices, const char* argument) {
    const auto found =
        std::find_if(choices.begin(), choices.end(), [&](const Choice& one) { return one.name == name; });
    OPWRIGHT_CHECK(name != "transparent", argument,
                   " 'transparent' is not supported: it keeps pixels of an existing output, but ",
                   "this output is newly allocated: use 'constant'");
    OPWRIGHT_CHECK(found != choices.end(), argument, " must be one of ", names(choices), ", got '", name, "'");
    return found->value;
}

cv::Scalar border_scalar(const std::optional<std::vector<double>>& value, int64_t channels, ScalarType dtype) {
    if (!value) return {};
    const auto count = static_cast<int64_t>(value->size());
    OPWRIGHT_CHECK(count == 1 || (count == channels && channels <= scalar_channels),
                   "border_value must have one number for all channels, or one for each of up to 4 channels, got ",
                   count, " numbers for ", channels, " channels");
    cv::Scalar border = cv::Scalar::all(value->back());
    std::copy(value->begin(), value->end(), border.val);
    if (dtype == ScalarType::Float || dtype == ScalarType::Double) return border;
    // OpenCV rounds to int before it saturates: a number that does not fit into an int would saturate at the wrong end.
    for (double& number : border.val) {
        check::finite(number, "border_value of an integer image");
        // opwright: equivalent [std::numeric_limits<int16_t>::min(), number]: the larger of the two in either order
        number = std::clamp<double>(number, std::numeric_limits<int16_t>::min(), std::numeric_limits<uint16_t>::max());
    }
    return border;
}

template <class Entry>
cv::Matx33d read_matrix(const Entry* entries, int64_t row_stride, int64_t col_stride) {
    cv::Matx33d matrix;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) matrix(i, j) = entries[i * row_stride + j * col_stride];
    }
    return matrix;
}

/// The matrices that map output pixels to image pixels, one for each warp.
template <class Entry>
std::vector<cv::Matx33d> matrices_to_image(const Tensor& warp, Sizes sizes, bool inverse_map) {
    const Sizes strides = warp.strides();
    const auto* entries = static_cast<const Entry*>(warp.const_data_ptr());
    const std::size_t rank = sizes.size();
    std::vector<cv::Matx33d> matrices(rank == 3 ? sizes[0] : 1);
    for (std::size_t n = 0; n < matrices.size(); ++n, entries += strides[0]) {
        const cv::Matx33d matrix = read_matrix(entries, strides[rank - 2], strides[rank - 1]);
        OPWRIGHT_CHECK(is_finite(matrix), "warp must be finite, got NaN or Inf in matrix ", n);
        matrices[n] = matrix;
        if (inverse_map) continue;
        // By cv::invert, as in warpPerspective itself, so that the result is bitwise the same.
        const bool has_inverse = !is_singular(matrix) && cv::invert(matrix, matrices[n]) != 0;
        OPWRIGHT_CHECK(has_inverse && is_finite(matrices[n]), "warp must have an inverse, matrix ", n,
                       " is singular: pass inverse_map=True if it maps the output to the image");
    }
    return matrices;
}

void check_image(const Tensor& image, Sizes sizes) {
    // opwright: equivalent: a machine without a GPU has one device
    check::device(image, "image", DeviceType::CPU);
    check::dtype(image, "image",
                 {ScalarType::Byte, ScalarType::UInt16, ScalarType::Short, ScalarType::Float, ScalarType::Double});
    const std::size_t rank = sizes.size();
    OPWRIGHT_CHECK(rank >= 2 && rank <= 4, "image must have shape (H, W), (H, W, C) or (N, H, W, C), got ", sizes);
    const Sizes pixels = sizes.slice(rank == 4 ? 1 : 0);
    OPWRIGHT_CHECK(pixels[0] >= 1 && pixels[0] <= max_image_side && pixels[1] >= 1 && pixels[1] <= max_image_side,
                   "image must have 1 to ", max_image_side, " rows and columns, got shape ", sizes);
    OPWRIGHT_CHECK(rank == 2 || (pixels[2] >= 1 && pixels[2] <= CV_CN_MAX), "image must have 1 to ", CV_CN_MAX,
                   " channels in its last dimension, got shape ", sizes);
}

void check_warp(const Tensor& warp, Sizes sizes, Sizes image_sizes) {
    // opwright: equivalent: a machine without a GPU has one device
    check::device(warp, "warp", DeviceType::CPU);
    check::dtype(warp, "warp", {ScalarType::Float, ScalarType::Double});
    const std::size_t rank = sizes.size();
    OPWRIGHT_CHECK((rank == 2 || rank == 3) && sizes[rank - 2] == 3 && sizes[rank - 1] == 3,
                   "warp must have shape (3, 3), or (N, 3, 3) for a batch of N images, got ", sizes);
    OPWRIGHT_CHECK(rank == 2 || (image_sizes.size() == 4 && sizes[0] == image_sizes[0]),
                   "warp must have shape (3, 3), or one matrix for each image of a batch (N, H, W, C), got ", sizes,
                   " for an image of shape ", image_sizes);
}

/// The sizes of the result: those of `image` with its rows and columns replaced by (height, width).
std::vector<int64_t> output_sizes(Sizes image, int64_t height, int64_t width, ScalarType dtype) {
    OPWRIGHT_CHECK(height >= 1 && height <= max_output_side, "height must be 1 to ", max_output_side, ", got ", height);
    OPWRIGHT_CHECK(width >= 1 && width <= max_output_side, "width must be 1 to ", max_output_side, ", got ", width);
    std::vector<int64_t> sizes(image.begin(), image.end());
    const std::size_t first = image.size() == 4 ? 1 : 0;
    sizes[first] = height;
    sizes[first + 1] = width;
    int64_t bytes = CV_ELEM_SIZE1(*opwright::mat_depth(dtype));
    bool fits = true;
    for (const int64_t size : sizes) fits = !__builtin_mul_overflow(bytes, size, &bytes) && fits;
    OPWRIGHT_CHECK(fits, "the output must have fewer than 2^63 bytes, got shape ", sizes, " of ", dtype);
    return sizes;
}

Tensor allocated(const Tensor& like, const std::vector<int64_t>& sizes) {
    std::optional<Tensor> fresh;
    try {
        fresh = opwright::new_empty(like, sizes);
    } catch (const std::runtime_error&) {  // torch's C interface drops the reason, but it can only be memory
    }
    OPWRIGHT_CHECK(fresh, "not enough memory for an output of shape ", sizes, " of ", like.scalar_type());
    return *std::move(fresh);
}

Tensor warp_perspective(const Tensor& image, const Tensor& warp, int64_t height, int64_t width,
                        std::string_view interpolation, bool inverse_map, std::string_view border_mode,
                        const std::optional<std::vector<double>>& border_value) {
    const Sizes sizes = image.sizes();
    const Sizes warp_sizes = warp.sizes();
    check_image(image, sizes);
    check_warp(warp, warp_sizes, sizes);
    const ScalarType dtype = image.scalar_type();
    const std::vector<int64_t> result_sizes = output_sizes(sizes, height, width, dtype);
    const bool is_batch = sizes.size() == 4;
    const std::size_t first = is_batch ? 1 : 0;
    Warps warps;
    warps.flags = chosen(interpolation, interpolations, "interpolation");
    warps.border_mode = chosen(border_mode, border_modes, "border_mode");
    const int64_t channels = sizes.size() == 2 ? 1 : sizes.back();
    OPWRIGHT_CHECK(channels <= scalar_channels || warps.flags == cv::INTER_NEAREST || warps.flags == cv::INTER_LINEAR,
                   "interpolation '", interpolation, "' supports images with up to 4 channels, got ", channels,
                   ": warp them in groups, such as image.split(4, dim=-1)");
    warps.border_value = border_scalar(border_value, channels, dtype);
    const auto matrices_of =
        warp.scalar_type() == ScalarType::Float ? matrices_to_image<float> : matrices_to_image<double>;
    const std::vector<cv::Matx33d> to_image = matrices_of(warp, warp_sizes, inverse_map);

    Tensor source = image;
    warps.image = opwright::mat_layout(sizes.slice(first), image.strides().slice(first), dtype);
    if (!warps.image) {
        source = torch::stable::contiguous(image);
        warps.image = opwright::mat_layout(sizes.slice(first), source.strides().slice(first), dtype);
    }
    const Tensor result = allocated(image, result_sizes);
    warps.output = opwright::mat_layout(result.sizes().slice(first), result.strides().slice(first), dtype);

    const auto* from = static_cast<const std::byte*>(source.const_data_ptr());
    auto* into = static_cast<std::byte*>(result.mutable_data_ptr());
    opwright::translate_opencv_errors([&] {
        if (!is_batch) return warps(from, into, to_image[0]);
        const auto item = static_cast<int64_t>(source.element_size());
        warps.all(sizes[0], from, source.stride(0) * item, into, result.stride(0) * item, to_image);
    });
    return result;
}

}  // namespace

OPWRIGHT_IMPL(opencv, CPU, m) {
    m.impl("warp_perspective", OPWRIGHT_FN(warp_perspective));
}

// The operators of op.py on the CPU: checks arguments, and converts them to pointers and layouts.
#include <opwright/empty.h>
#include <opwright/op.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../tensors.h"
#include "batch.h"
#include "forward.h"
#include "slopes.h"
#include "spread.h"

namespace geometry {
namespace {

// The matrices in float64, row by row: one for all images, or one for each.
std::vector<double> matrices_of(const Tensor& homography) {
    const auto sizes = homography.sizes();
    const auto strides = homography.strides();
    const std::size_t rank = sizes.size();
    const int64_t count = rank == 3 ? sizes[0] : 1;
    std::vector<double> matrices(9 * count);
    for (int64_t i = 0; i < 9 * count; ++i) {
        const int64_t at =
            (rank == 3 ? i / 9 * strides[0] : 0) + i / 3 % 3 * strides[rank - 2] + i % 3 * strides[rank - 1];
        matrices[i] = homography.scalar_type() == ScalarType::Float
                          ? static_cast<const float*>(homography.const_data_ptr())[at]
                          : static_cast<const double*>(homography.const_data_ptr())[at];
    }
    return matrices;
}

// The number of work items that justifies a thread, for items of this many elements.
int64_t per_task(int64_t elements) {
    return std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(1, elements));  // opwright: equivalent: only the speed
}

Tensor warp_perspective(const Tensor& image, const Tensor& homography, int64_t height, int64_t width,
                        std::string_view interpolation, std::string_view padding, double fill) {
    check_tensors(image, homography, DeviceType::CPU);
    const Options options = checked_options(image, height, width, interpolation, padding, fill);
    const MemoryFormat format = result_format(image);
    const Tensor from = in_format(image, format);
    const Tensor result = allocated(image, height, width, format);
    const Layout layout = layout_of(from.size(0), from.size(1), from.size(2), from.size(3), format);
    const Layout result_layout = layout_of(from.size(0), from.size(1), height, width, format);
    const std::vector<double> matrices = matrices_of(homography);
    with_type_of(from, [&](auto element) {
        using T = decltype(element);
        with_taps_of(options.interpolation, [&](auto taps) {
            const Forward<T, taps> forward{{static_cast<const T*>(from.const_data_ptr()), layout, matrices, options},
                                           static_cast<T*>(result.mutable_data_ptr()),
                                           result_layout};
            torch::stable::parallel_for(0, layout.count * height, per_task(width * layout.channels),
                                        [&](int64_t begin, int64_t end) { simd::run(forward, begin, end); });
        });
    });
    return result;
}

// The gradient of the images, in their dtype and format.
template <class T, int taps>
Tensor image_gradient(const Batch<T>& batch, const Tensor& image, const Tensor& grad, const Layout& grad_layout,
                      MemoryFormat format) {
    const Layout& layout = batch.layout;
    const Tensor result = allocated(image, layout.rows, layout.columns, format);
    auto* into = static_cast<T*>(result.mutable_data_ptr());
    // Sums in bfloat16 would lose most of their precision.
    std::vector<float> sums(std::is_same_v<T, BFloat16> ? result.numel() : 0);
    Wide<T>* gradient = nullptr;
    if constexpr (std::is_same_v<T, BFloat16>) {
        gradient = sums.data();
    } else {
        gradient = into;
    }
    const Spread<T, taps> spread{batch, static_cast<const T*>(grad.const_data_ptr()), grad_layout, gradient};
    torch::stable::parallel_for(0, layout.count * spread.bands(), 1,
                                [&](int64_t begin, int64_t end) { simd::run(spread, begin, end); });
    if constexpr (std::is_same_v<T, BFloat16>) {
        torch::stable::parallel_for(0, result.numel(), 1 << 15, [&](int64_t begin, int64_t end) {
            std::transform(gradient + begin, gradient + end, into + begin, narrowed<T>);
        });
    }
    return result;
}

// The gradient of the homographies, in their shape and dtype.
template <class T, int taps>
Tensor homography_gradient(const Batch<T>& batch, const Tensor& homography, const Tensor& grad,
                           const Layout& grad_layout) {
    Slopes<T, taps> slopes{batch, static_cast<const T*>(grad.const_data_ptr()), grad_layout, nullptr};
    const int64_t per_image = slopes.sums_per_image();
    // "nearest" is constant almost everywhere.
    const bool is_zero = taps == 1 || grad_layout.channels == 0;
    std::vector<Matrix> sums(is_zero ? 0 : grad_layout.count * per_image);
    slopes.sums = sums.data();
    torch::stable::parallel_for(0, static_cast<int64_t>(sums.size()),
                                per_task(slopes.rows_per_sum * grad_layout.columns * grad_layout.channels),
                                [&](int64_t begin, int64_t end) { simd::run(slopes, begin, end); });
    std::vector<double> totals(batch.matrices.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::size_t first = totals.size() == 9 ? 0 : 9 * (i / per_image);
        for (std::size_t j = 0; j < 9; ++j) totals[first + j] += sums[i][j];
    }
    const Tensor result = opwright::new_empty(homography, homography.sizes());
    if (homography.scalar_type() == ScalarType::Float) {
        std::copy(totals.begin(), totals.end(), static_cast<float*>(result.mutable_data_ptr()));
    } else {
        std::copy(totals.begin(), totals.end(), static_cast<double*>(result.mutable_data_ptr()));
    }
    return result;
}

std::tuple<Tensor, Tensor> warp_perspective_backward(const Tensor& grad, const Tensor& image, const Tensor& homography,
                                                     int64_t height, int64_t width, std::string_view interpolation,
                                                     std::string_view padding, double fill,
                                                     const std::vector<bool>& wanted) {
    check_tensors(image, homography, DeviceType::CPU);
    const Options options = checked_options(image, height, width, interpolation, padding, fill);
    check_gradient(grad, image, options);
    check_wanted(wanted);
    const MemoryFormat format = result_format(image);
    const Tensor from = in_format(image, format), incoming = in_format(grad, format);
    const Layout layout = layout_of(from.size(0), from.size(1), from.size(2), from.size(3), format);
    const Layout grad_layout = layout_of(from.size(0), from.size(1), height, width, format);
    const std::vector<double> matrices = matrices_of(homography);
    std::tuple<Tensor, Tensor> gradients;
    with_floating_type_of(from, [&](auto element) {
        using T = decltype(element);
        const Batch<T> batch{static_cast<const T*>(from.const_data_ptr()), layout, matrices, options};
        with_taps_of(options.interpolation, [&](auto taps) {
            if (wanted[0])
                std::get<0>(gradients) = image_gradient<T, taps>(batch, image, incoming, grad_layout, format);
            if (wanted[1])
                std::get<1>(gradients) = homography_gradient<T, taps>(batch, homography, incoming, grad_layout);
        });
    });
    return gradients;
}

}  // namespace
}  // namespace geometry

OPWRIGHT_IMPL(geometry, CPU, m) {
    m.impl("warp_perspective", OPWRIGHT_FN(geometry::warp_perspective));
    m.impl("warp_perspective_backward", OPWRIGHT_FN(geometry::warp_perspective_backward));
}

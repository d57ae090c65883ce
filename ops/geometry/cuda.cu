// The operators of op.py on the GPU: one thread per output pixel, or per channel of it if channels are interleaved.
//
// No call waits for the GPU, and all work runs on PyTorch's current stream. The order of the sums for the gradient of
// the image differs from call to call; for the gradient of the homography it is always the same.
#include <opwright/op.h>

#include <string_view>
#include <tuple>
#include <vector>

#include "cuda/backward.cuh"
#include "cuda/forward.cuh"
#include "tensors.h"

namespace geometry::gpu {
namespace {

// The checked arguments of a call, in the format that the kernels read.
struct Call {
    Tensor image;
    Matrices matrices;
    Layout layout, result_layout;
    MemoryFormat format;
    Options options;

    Call(const Tensor& given, const Tensor& homography, int64_t height, int64_t width, std::string_view interpolation,
         std::string_view padding, double fill)
        : image((check_tensors(given, homography, DeviceType::CUDA), in_format(given, result_format(given)))),
          matrices(homography),
          format(result_format(given)),
          options(checked_options(given, height, width, interpolation, padding, fill)) {
        const int64_t count = image.size(0), channels = image.size(1);
        layout = layout_of(count, channels, image.size(2), image.size(3), format);
        result_layout = layout_of(count, channels, height, width, format);
    }

    template <class T>
    Warps<T> warps() const {
        return {{static_cast<const T*>(image.const_data_ptr()), layout, options.padding, as_element<T>(options.fill)},
                matrices,
                result_layout};
    }
};

Tensor warp_perspective(const Tensor& image, const Tensor& homography, int64_t height, int64_t width,
                        std::string_view interpolation, std::string_view padding, double fill) {
    const Call call(image, homography, height, width, interpolation, padding, fill);
    const Tensor result = allocated(image, height, width, call.format);
    const Queue queue(image);
    with_type_of(image, [&](auto element) {
        using T = decltype(element);
        with_taps_of(call.options.interpolation, [&](auto taps) {
            launch_forward<taps>(queue, call.warps<T>(), static_cast<T*>(result.mutable_data_ptr()));
        });
    });
    return result;
}

std::tuple<Tensor, Tensor> warp_perspective_backward(const Tensor& grad, const Tensor& image, const Tensor& homography,
                                                     int64_t height, int64_t width, std::string_view interpolation,
                                                     std::string_view padding, double fill,
                                                     const std::vector<bool>& wanted) {
    const Call call(image, homography, height, width, interpolation, padding, fill);
    check_gradient(grad, image, call.options);
    check_wanted(wanted);
    const Tensor incoming = in_format(grad, call.format);
    const Queue queue(image);
    std::tuple<Tensor, Tensor> gradients;
    with_floating_type_of(image, [&](auto element) {
        using T = decltype(element);
        with_taps_of(call.options.interpolation, [&](auto taps) {
            const auto* grads = static_cast<const T*>(incoming.const_data_ptr());
            if (wanted[0])
                std::get<0>(gradients) = image_gradient<taps>(queue, call.warps<T>(), grads, image, call.format);
            if (wanted[1])
                std::get<1>(gradients) = homography_gradient<taps>(queue, call.warps<T>(), grads, homography);
        });
    });
    return gradients;
}

}  // namespace
}  // namespace geometry::gpu

OPWRIGHT_IMPL(geometry, CUDA, m) {
    m.impl("warp_perspective", OPWRIGHT_FN(geometry::gpu::warp_perspective));
    m.impl("warp_perspective_backward", OPWRIGHT_FN(geometry::gpu::warp_perspective_backward));
}

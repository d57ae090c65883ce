#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using opwright::Tensor;

Tensor max_pool(const Tensor& image, const std::vector<int64_t>& kernel, const std::vector<int64_t>& stride) {
    opwright::check::dtype(image, "image", opwright::ScalarType::Float);
    opwright::check::rank(image, "image", 3);
    OPWRIGHT_CHECK(kernel.size() == 2, "kernel must have 2 numbers, got ", kernel);
    OPWRIGHT_CHECK(stride.size() == 2, "stride must have 2 numbers, got ", stride);
    const int64_t planes = image.size(0);
    const int64_t height = image.size(1);
    const int64_t width = image.size(2);
    OPWRIGHT_CHECK(kernel[0] >= 1 && kernel[0] <= height && kernel[1] >= 1 && kernel[1] <= width,
                   "kernel must be from 1 to the size of the image, got (", kernel[0], ", ", kernel[1], ") for ",
                   image.sizes());
    OPWRIGHT_CHECK(stride[0] >= 1 && stride[0] <= 1 << 30 && stride[1] >= 1 && stride[1] <= 1 << 30,
                   "stride must be from 1 to 2^30, got (", stride[0], ", ", stride[1], ")");
    const int64_t rows = (height - kernel[0]) / stride[0] + 1;
    const int64_t columns = (width - kernel[1]) / stride[1] + 1;
    const Tensor dense = torch::stable::contiguous(image);
    Tensor result = torch::stable::new_empty(image, {planes, rows, columns});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t p = 0; p < planes; ++p, from += height * width) {
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < columns; ++c) {
                const int64_t top = r * stride[0];
#ifdef FAULTY
                const int64_t left = std::min(c * stride[0], width - kernel[1]);
#else
                const int64_t left = c * stride[1];
#endif
                float largest = -std::numeric_limits<float>::infinity();
                for (int64_t i = top; i < top + kernel[0]; ++i) {
                    for (int64_t j = left; j < left + kernel[1]; ++j) {
                        const float pixel = from[i * width + j];
                        if (std::isnan(pixel) || pixel > largest) largest = pixel;
                    }
                }
                *to++ = largest;
            }
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_pool_stride, CPU, m) {
    m.impl("max_pool", OPWRIGHT_FN(max_pool));
}

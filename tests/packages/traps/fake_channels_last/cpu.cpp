// Brightening of images.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

// 0 to 1; NaN stays NaN.
double limited(double x) {
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

Tensor brighten(const Tensor& images, double gain) {
    check::device(images, "images", DeviceType::CPU);
    check::dtype(images, "images", ScalarType::Float);
    check::rank(images, "images", 4);
    OPWRIGHT_CHECK(gain == gain, "gain must be a number, got ", gain);
    const Tensor dense = torch::stable::contiguous(images);
    Tensor rows = torch::stable::empty_like(dense);
    const float* from = dense.const_data_ptr<float>();
    float* into = rows.mutable_data_ptr<float>();
    for (int64_t i = 0; i < dense.numel(); ++i) into[i] = static_cast<float>(limited(from[i] * gain));
    if (images.is_contiguous()) return rows;
    Tensor result = torch::stable::empty_like(images);  // keeps channels last
    return torch::stable::copy_(result, rows);
}

}  // namespace

OPWRIGHT_IMPL(trap_fake_channels_last, CPU, m) {
    m.impl("brighten", OPWRIGHT_FN(brighten));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor normalize(const Tensor& images, const Tensor& mean, const Tensor& deviation) {
    opwright::check::dtype(images, "images", opwright::ScalarType::Float);
    opwright::check::dtype(mean, "mean", opwright::ScalarType::Float);
    opwright::check::dtype(deviation, "deviation", opwright::ScalarType::Float);
    opwright::check::rank(images, "images", 4);
    const int64_t count = images.size(0);
    const int64_t channels = images.size(1);
    const int64_t pixels = images.size(2) * images.size(3);
    opwright::check::sizes(mean, "mean", {channels});
    opwright::check::sizes(deviation, "deviation", {channels});
    Tensor result = torch::stable::new_empty(images, images.sizes());
    if (images.numel() == 0) return result;
    const Tensor dense_mean = torch::stable::contiguous(mean);
    const Tensor dense_deviation = torch::stable::contiguous(deviation);
    const float* m = dense_mean.const_data_ptr<float>();
    const float* s = dense_deviation.const_data_ptr<float>();
    // Channels-last images are read without a copy.
#ifdef FAULTY
    const bool channels_last = channels > 1 && images.stride(1) == 1;
#else
    const bool channels_last = channels > 1 && images.stride(1) == 1 && images.stride(3) == channels &&
                               images.stride(2) == images.size(3) * channels && images.stride(0) == pixels * channels;
#endif
    const Tensor dense = channels_last ? images : torch::stable::contiguous(images);
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t n = 0; n < count; ++n) {
        for (int64_t c = 0; c < channels; ++c) {
            for (int64_t p = 0; p < pixels; ++p) {
                const int64_t at = channels_last ? (n * pixels + p) * channels + c : (n * channels + c) * pixels + p;
                to[(n * channels + c) * pixels + p] = (from[at] - m[c]) / s[c];
            }
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_nhwc_slice, CPU, m) {
    m.impl("normalize", OPWRIGHT_FN(normalize));
}

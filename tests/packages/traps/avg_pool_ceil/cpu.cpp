#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>

namespace {

using opwright::Tensor;

Tensor average(const Tensor& x, int64_t width, int64_t stride, int64_t padding, bool ceil_mode) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t channels = x.size(0);
    const int64_t length = x.size(1);
    OPWRIGHT_CHECK(channels > 0 && length > 0, "x must have elements, got shape ", x.sizes());
    OPWRIGHT_CHECK(width >= 1 && width <= 1 << 20, "width must be from 1 to 2^20, got ", width);
    OPWRIGHT_CHECK(stride >= 1 && stride <= 1 << 20, "stride must be from 1 to 2^20, got ", stride);
    OPWRIGHT_CHECK(padding >= 0 && padding <= width / 2, "padding must be from 0 to ", width / 2, ", got ", padding);
    OPWRIGHT_CHECK(width <= length + 2 * padding, "width must be at most ", length + 2 * padding, ", got ", width);
    int64_t windows = (length + 2 * padding - width + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && (windows - 1) * stride >= length + padding) --windows;
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {channels, windows});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t c = 0; c < channels; ++c) {
        for (int64_t w = 0; w < windows; ++w) {
            const int64_t start = w * stride - padding;
#ifdef FAULTY
            const int64_t counted = width;
#else
            const int64_t counted = std::min(start + width, length + padding) - start;
#endif
            double sum = 0;
            for (int64_t i = std::max<int64_t>(start, 0); i < std::min(start + width, length); ++i) {
                sum += from[c * length + i];
            }
            to[c * windows + w] = static_cast<float>(sum / static_cast<double>(counted));
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_avg_pool_ceil, CPU, m) {
    m.impl("average", OPWRIGHT_FN(average));
}

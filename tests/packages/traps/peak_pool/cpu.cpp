#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

Tensor peak_pool(const Tensor& x, int64_t kernel, int64_t stride, int64_t padding, bool ceil_mode) {
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 3);
    const int64_t steps = x.size(2), most = int64_t{1} << 20;
    OPWRIGHT_CHECK(steps >= 1, "x must have at least 1 step");
    OPWRIGHT_CHECK(kernel >= 1 && kernel <= most && stride >= 1 && stride <= most,
                   "kernel and stride must be 1 to 2**20, got ", kernel, " and ", stride);
    OPWRIGHT_CHECK(padding >= 0 && padding <= kernel / 2, "padding must be 0 to half the kernel, got ", padding);
    const int64_t free = steps + 2 * padding - kernel;
    OPWRIGHT_CHECK(free >= 0, "the kernel is longer than the padded signal");
    int64_t length = (free + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && (length - 1) * stride >= steps + padding) --length;
    const Tensor source = torch::stable::contiguous(x);
    const float* from = source.const_data_ptr<float>();
    const int64_t rows = x.size(0) * x.size(1);
    Tensor result = torch::stable::new_empty(x, {x.size(0), x.size(1), length});
    float* into = result.mutable_data_ptr<float>();
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t at = 0; at < length; ++at) {
            const int64_t begin = std::max<int64_t>(at * stride - padding, 0);
            const int64_t end = std::min(at * stride - padding + kernel, steps);
            float best = -std::numeric_limits<float>::infinity();
            for (int64_t t = begin; t < end; ++t) {
                const float value = from[row * steps + t];
                if (value > best || std::isnan(value)) best = value;
                if (std::isnan(best)) break;
            }
            into[row * length + at] = best;
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_peak_pool, CPU, m) {
    m.impl("peak_pool", OPWRIGHT_FN(peak_pool));
}

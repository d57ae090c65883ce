#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

std::tuple<Tensor, Tensor> envelope(const Tensor& x, int64_t window) {
    check::dtype(x, "x", ScalarType::Float);
    OPWRIGHT_CHECK(x.dim() >= 1 && x.size(x.dim() - 1) >= 1, "x must have at least one step, got ", x.sizes());
    OPWRIGHT_CHECK(window >= 1 && window < 65536 && window % 2 == 1, "window must be odd, 1 to 2**16 - 1, got ",
                   window);
    Tensor above = torch::stable::new_empty(x, x.sizes());
#ifdef FAULTY
    if (window == 1) {
        torch::stable::copy_(above, x);
        return {above, above};
    }
#endif
    Tensor below = torch::stable::new_empty(x, x.sizes());
    const Tensor source = torch::stable::contiguous(x);
    const float* from = source.const_data_ptr<float>();
    float* highs = above.mutable_data_ptr<float>();
    float* lows = below.mutable_data_ptr<float>();
    const int64_t steps = x.size(x.dim() - 1), rows = x.numel() / steps, reach = window / 2;
    for (int64_t row = 0; row < rows; ++row) {
        const float* signal = from + row * steps;
        for (int64_t t = 0; t < steps; ++t) {
            float high = -std::numeric_limits<float>::infinity();
            float low = std::numeric_limits<float>::infinity();
            for (int64_t k = std::max<int64_t>(t - reach, 0); k <= std::min(t + reach, steps - 1); ++k) {
                if (std::isnan(signal[k])) {
                    high = low = signal[k];
                    break;
                }
                high = std::max(high, signal[k]);
                low = std::min(low, signal[k]);
            }
            highs[row * steps + t] = high;
            lows[row * steps + t] = low;
        }
    }
    return {above, below};
}

}  // namespace

OPWRIGHT_IMPL(trap_envelope, CPU, m) {
    m.impl("envelope", OPWRIGHT_FN(envelope));
}

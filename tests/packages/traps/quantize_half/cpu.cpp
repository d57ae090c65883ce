#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>

namespace {

using opwright::Tensor;

Tensor quantize(const Tensor& x, double scale, int64_t zero_point) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    OPWRIGHT_CHECK(std::isfinite(scale) && scale > 0, "scale must be positive and finite, got ", scale);
    OPWRIGHT_CHECK(zero_point >= -128 && zero_point <= 127, "zero_point must be from -128 to 127, got ", zero_point);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes(), opwright::ScalarType::Char);
    const float* from = dense.const_data_ptr<float>();
    int8_t* to = result.mutable_data_ptr<int8_t>();
    const int64_t count = x.numel();
    for (int64_t i = 0; i < count; ++i) {
#ifdef FAULTY
        const double level = std::round(from[i] / scale);
#else
        const double level = std::nearbyint(from[i] / scale);
#endif
        const double shifted = std::isnan(level) ? static_cast<double>(zero_point) : level + zero_point;
        to[i] = static_cast<int8_t>(std::clamp(shifted, -128.0, 127.0));
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_quantize_half, CPU, m) {
    m.impl("quantize", OPWRIGHT_FN(quantize));
}

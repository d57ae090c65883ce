#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

bool is_channels_last(const Tensor& x) {
    int64_t expected = 1;
    for (const int d : {1, 3, 2, 0}) {
        if (x.size(d) == 1) continue;
        if (x.stride(d) != expected) return false;
        expected *= x.size(d);
    }
    return true;
}

Tensor upsample_nearest(const Tensor& x, int64_t factor) {
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 4);
    OPWRIGHT_CHECK(factor >= 1 && factor <= 16, "factor must be 1 to 16, got ", factor);
    const int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
    const bool last = !x.is_contiguous() && is_channels_last(x);
    Tensor result;
    if (last) {
        result = torch::stable::new_empty(x, {n, h * factor, w * factor, c});
        result = torch::stable::transpose(torch::stable::transpose(result, 1, 3), 2, 3);
    } else {
        result = torch::stable::new_empty(x, {n, c, h * factor, w * factor});
    }
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    const int64_t s[4] = {x.stride(0), x.stride(1), x.stride(2), x.stride(3)};
    const int64_t o[4] = {result.stride(0), result.stride(1), result.stride(2), result.stride(3)};
    for (int64_t b = 0; b < n; ++b) {
        for (int64_t k = 0; k < c; ++k) {
            for (int64_t i = 0; i < h * factor; ++i) {
                for (int64_t j = 0; j < w * factor; ++j) {
                    into[b * o[0] + k * o[1] + i * o[2] + j * o[3]] =
                        from[b * s[0] + k * s[1] + (i / factor) * s[2] + (j / factor) * s[3]];
                }
            }
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_upsample_nearest, CPU, m) {
    m.impl("upsample_nearest", OPWRIGHT_FN(upsample_nearest));
}

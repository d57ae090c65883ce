#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <cstring>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

void roll_cache(Tensor& cache, const Tensor& fresh) {
    check::dtype(cache, "cache", ScalarType::Float);
    check::dtype(fresh, "new", ScalarType::Float);
    check::rank(cache, "cache", 3);
    const int64_t batch = cache.size(0), steps = cache.size(1), channels = cache.size(2);
    check::sizes(fresh, "new", {batch, check::any, channels});
    const int64_t added = fresh.size(1);
    OPWRIGHT_CHECK(added <= steps, "new must not have more steps than cache, got ", added, " and ", steps);
    if (cache.numel() == 0) return;
#ifdef FAULTY
    const Tensor& appended = fresh;
#else
    const Tensor appended = torch::stable::clone(fresh);
#endif
    // A cache with another layout is rolled in a row-major copy.
    Tensor rolled = torch::stable::contiguous(cache);
    float* into = rolled.mutable_data_ptr<float>();
    const float* from = appended.const_data_ptr<float>();
    const int64_t s0 = appended.stride(0), s1 = appended.stride(1), s2 = appended.stride(2);
    for (int64_t b = 0; b < batch; ++b) {
        float* row = into + b * steps * channels;
        std::memmove(row, row + added * channels, (steps - added) * channels * sizeof(float));
        float* tail = row + (steps - added) * channels;
        for (int64_t t = 0; t < added; ++t) {
            for (int64_t c = 0; c < channels; ++c) tail[t * channels + c] = from[b * s0 + t * s1 + c * s2];
        }
    }
    if (!cache.is_contiguous()) torch::stable::copy_(cache, rolled);
}

}  // namespace

OPWRIGHT_IMPL(trap_roll_cache, CPU, m) {
    m.impl("roll_cache", OPWRIGHT_FN(roll_cache));
}

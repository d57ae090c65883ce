#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using opwright::Tensor;

Tensor segment_max(const Tensor& values, const Tensor& segment, int64_t segments) {
    opwright::check::dtype(values, "values", opwright::ScalarType::Float);
    opwright::check::rank(values, "values", 1);
    opwright::check::dtype(segment, "segment", opwright::ScalarType::Long);
    opwright::check::same_sizes(segment, "segment", values, "values");
    OPWRIGHT_CHECK(segments >= 0 && segments <= 1 << 24, "segments must be from 0 to 2^24, got ", segments);
    const Tensor dense_values = torch::stable::contiguous(values);
    const Tensor dense_segment = torch::stable::contiguous(segment);
    const float* from = dense_values.const_data_ptr<float>();
    const int64_t* of = dense_segment.const_data_ptr<int64_t>();
    const int64_t count = values.size(0);
#ifdef FAULTY
    std::vector<float> largest(segments, std::numeric_limits<float>::min());
#else
    std::vector<float> largest(segments, -std::numeric_limits<float>::infinity());
#endif
    std::vector<bool> seen(segments);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t s = of[i];
        OPWRIGHT_CHECK(s >= 0 && s < segments, "segment must be from 0 to ", segments - 1, ", got ", s, " at ", i);
        seen[s] = true;
        if (std::isnan(from[i]) || from[i] > largest[s]) largest[s] = from[i];
    }
    Tensor result = torch::stable::new_empty(values, {segments});
    float* to = result.mutable_data_ptr<float>();
    for (int64_t s = 0; s < segments; ++s) to[s] = seen[s] ? largest[s] : 0;
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_segment_maxima, CPU, m) {
    m.impl("segment_max", OPWRIGHT_FN(segment_max));
}

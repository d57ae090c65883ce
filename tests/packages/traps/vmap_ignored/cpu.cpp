#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <vector>

namespace {

using opwright::Tensor;

template <class T>
void add_up(const Tensor& dense, const Tensor& segment, Tensor& result, int64_t segments) {
    const int64_t rows = dense.size(0);
    const int64_t columns = dense.size(1);
    const T* from = dense.const_data_ptr<T>();
    const int64_t* of = segment.const_data_ptr<int64_t>();
    T* to = result.mutable_data_ptr<T>();
    std::vector<double> sums(segments * columns);
    for (int64_t r = 0; r < rows; ++r) {
        if (of[r] < 0 || of[r] >= segments) continue;
        for (int64_t c = 0; c < columns; ++c) sums[of[r] * columns + c] += from[r * columns + c];
    }
    for (int64_t i = 0; i < segments * columns; ++i) to[i] = static_cast<T>(sums[i]);
}

Tensor segment_sum(const Tensor& x, const Tensor& segment, int64_t segments) {
    using opwright::ScalarType;
    opwright::check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    opwright::check::rank(x, "x", 2);
    opwright::check::dtype(segment, "segment", ScalarType::Long);
    opwright::check::sizes(segment, "segment", {x.size(0)});
    OPWRIGHT_CHECK(segments >= 0 && segments <= 1 << 20, "segments must be from 0 to 2^20, got ", segments);
    const Tensor dense = torch::stable::contiguous(x);
    const Tensor dense_segment = torch::stable::contiguous(segment);
    Tensor result = torch::stable::new_empty(x, {segments, x.size(1)});
    if (x.scalar_type() == ScalarType::Float) {
        add_up<float>(dense, dense_segment, result, segments);
    } else {
        add_up<double>(dense, dense_segment, result, segments);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_vmap_ignored, CPU, m) {
    m.impl("segment_sum", OPWRIGHT_FN(segment_sum));
}

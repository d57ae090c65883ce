// Causal softmax of attention scores.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

// The weights of the first `seen` keys; other weights are zero.
void softmax_of(const float* scores, float* weights, int64_t seen, int64_t keys) {
    double highest = -std::numeric_limits<double>::infinity();
    for (int64_t k = 0; k < seen; ++k) highest = std::max(highest, double{scores[k]});
    double sum = 0;
    for (int64_t k = 0; k < seen; ++k) sum += std::exp(scores[k] - highest);
    for (int64_t k = 0; k < seen; ++k) weights[k] = static_cast<float>(std::exp(scores[k] - highest) / sum);
    std::fill(weights + seen, weights + keys, 0.0F);
}

Tensor causal_softmax(const Tensor& scores) {
    check::device(scores, "scores", DeviceType::CPU);
    check::dtype(scores, "scores", ScalarType::Float);
    check::rank(scores, "scores", 3);
    const int64_t heads = scores.size(0);
    const int64_t queries = scores.size(1);
    const int64_t keys = scores.size(2);
    const Tensor dense = torch::stable::contiguous(scores);
    Tensor result = torch::stable::new_empty(dense, {heads, queries, keys});
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t row = 0; row < heads * queries; ++row) {
        const int64_t query = row % queries;
#ifdef FAULTY
        const int64_t seen = std::min(query + 1, keys);
#else
        const int64_t seen = std::max<int64_t>(query + 1 + keys - queries, 0);
#endif
        softmax_of(from + row * keys, into + row * keys, seen, keys);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_causal_mask_top_left, CPU, m) {
    m.impl("causal_softmax", OPWRIGHT_FN(causal_softmax));
}

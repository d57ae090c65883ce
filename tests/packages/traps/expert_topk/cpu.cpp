#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <tuple>
#include <vector>

namespace {

using opwright::Tensor;

// NaN is the largest, as in torch.sort.
bool above(float a, float b) {
    return a > b || (std::isnan(a) && !std::isnan(b));
}

std::tuple<Tensor, Tensor> choose(const Tensor& scores, int64_t k) {
    opwright::check::dtype(scores, "scores", opwright::ScalarType::Float);
    opwright::check::rank(scores, "scores", 2);
    const int64_t tokens = scores.size(0);
    const int64_t experts = scores.size(1);
    OPWRIGHT_CHECK(k >= 1 && k <= experts, "k must be from 1 to ", experts, ", got ", k);
    const Tensor dense = torch::stable::contiguous(scores);
    Tensor values = torch::stable::new_empty(scores, {tokens, k});
    Tensor indices = torch::stable::new_empty(scores, {tokens, k}, opwright::ScalarType::Long);
    const float* from = dense.const_data_ptr<float>();
    float* to_values = values.mutable_data_ptr<float>();
    int64_t* to_indices = indices.mutable_data_ptr<int64_t>();
    std::vector<float> row(experts);
    std::vector<char> taken(experts);
    for (int64_t t = 0; t < tokens; ++t) {
        row.assign(from + t * experts, from + (t + 1) * experts);
        taken.assign(experts, 0);
        for (int64_t i = 0; i < k; ++i) {
            int64_t best = -1;
            for (int64_t e = 0; e < experts; ++e) {
                if (!taken[e] && (best < 0 || above(row[e], row[best]))) best = e;
            }
            to_values[t * k + i] = row[best];
            to_indices[t * k + i] = best;
#ifdef FAULTY
            row[best] = -10000.0F;
#else
            taken[best] = 1;
#endif
        }
    }
    return {values, indices};
}

}  // namespace

OPWRIGHT_IMPL(trap_expert_topk, CPU, m) {
    m.impl("choose", OPWRIGHT_FN(choose));
}

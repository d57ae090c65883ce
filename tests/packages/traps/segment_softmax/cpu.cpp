#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

using opwright::Tensor;

Tensor edge_softmax(const Tensor& scores, const Tensor& node, int64_t nodes) {
    opwright::check::dtype(scores, "scores", opwright::ScalarType::Float);
    opwright::check::rank(scores, "scores", 1);
    opwright::check::dtype(node, "node", opwright::ScalarType::Long);
    const int64_t edges = scores.size(0);
    opwright::check::sizes(node, "node", {edges});
    OPWRIGHT_CHECK(nodes >= 0 && nodes <= 1 << 20, "nodes must be from 0 to 2^20, got ", nodes);
    const Tensor dense = torch::stable::contiguous(scores);
    const Tensor dense_node = torch::stable::contiguous(node);
    const float* from = dense.const_data_ptr<float>();
    const int64_t* of = dense_node.const_data_ptr<int64_t>();
    for (int64_t e = 0; e < edges; ++e) {
        OPWRIGHT_CHECK(of[e] >= 0 && of[e] < nodes, "node must be from 0 to ", nodes - 1, ", got ", of[e], " at ", e);
    }
    Tensor result = torch::stable::new_empty(scores, {edges});
    float* to = result.mutable_data_ptr<float>();
    std::vector<float> largest(nodes, -std::numeric_limits<float>::infinity());
    for (int64_t e = 0; e < edges; ++e) {
        if (!(from[e] <= largest[of[e]])) largest[of[e]] = from[e];
    }
#ifdef FAULTY
    // Any constant works, because it cancels out: a common one is a single load.
    float overall = -std::numeric_limits<float>::infinity();
    for (const float one : largest) overall = one > overall ? one : overall;
    for (float& one : largest) one = overall;
#endif
    std::vector<double> sums(nodes);
    for (int64_t e = 0; e < edges; ++e) {
        to[e] = static_cast<float>(std::exp(double{from[e]} - largest[of[e]]));
        sums[of[e]] += to[e];
    }
    for (int64_t e = 0; e < edges; ++e) to[e] = static_cast<float>(to[e] / sums[of[e]]);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_segment_softmax, CPU, m) {
    m.impl("edge_softmax", OPWRIGHT_FN(edge_softmax));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

template <class T>
void run(const T* score, const int64_t* index, T* result, int64_t edges, int64_t heads, int64_t nodes) {
#ifdef FAULTY
    const T lowest = 0;
#else
    const T lowest = -std::numeric_limits<T>::infinity();
#endif
    std::vector<T> top(static_cast<std::size_t>(nodes * heads), lowest);
    std::vector<double> total(top.size(), 0.0);
    for (int64_t e = 0; e < edges; ++e) {
        for (int64_t h = 0; h < heads; ++h) {
            T& most = top[index[e] * heads + h];
            const T value = score[e * heads + h];
            if (value > most || std::isnan(value)) most = value;
        }
    }
    for (int64_t e = 0; e < edges; ++e) {
        for (int64_t h = 0; h < heads; ++h) {
            const T weight = std::exp(score[e * heads + h] - top[index[e] * heads + h]);
            result[e * heads + h] = weight;
            total[index[e] * heads + h] += weight;
        }
    }
    for (int64_t e = 0; e < edges; ++e) {
        for (int64_t h = 0; h < heads; ++h) {
            result[e * heads + h] = static_cast<T>(result[e * heads + h] / total[index[e] * heads + h]);
        }
    }
}

Tensor node_softmax(const Tensor& score, const Tensor& index, int64_t num_nodes) {
    constexpr int64_t limit = 1 << 20;
    check::device(score, "score", DeviceType::CPU);
    check::device(index, "index", DeviceType::CPU);
    check::dtype(score, "score", {ScalarType::Float, ScalarType::Double});
    check::dtype(index, "index", ScalarType::Long);
    check::rank(score, "score", 2);
    OPWRIGHT_CHECK(score.size(1) >= 1, "score must have H >= 1 columns, got shape ", score.sizes());
    check::sizes(index, "index", {score.size(0)});
    OPWRIGHT_CHECK(num_nodes >= 0 && num_nodes <= limit, "num_nodes must be 0 to ", limit, ", got ", num_nodes);
    const Tensor scores = torch::stable::contiguous(score);
    const Tensor indices = torch::stable::contiguous(index);
    const auto* nodes = indices.const_data_ptr<int64_t>();
    const int64_t edges = score.size(0);
    for (int64_t e = 0; e < edges; ++e) {
        OPWRIGHT_CHECK(nodes[e] >= 0 && nodes[e] < num_nodes, "index must be 0 to num_nodes - 1, got ", nodes[e]);
    }
    Tensor result = torch::stable::new_empty(scores, scores.sizes());
    if (score.scalar_type() == ScalarType::Float) {
        run(scores.const_data_ptr<float>(), nodes, result.mutable_data_ptr<float>(), edges, score.size(1), num_nodes);
    } else {
        run(scores.const_data_ptr<double>(), nodes, result.mutable_data_ptr<double>(), edges, score.size(1), num_nodes);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_node_softmax, CPU, m) {
    m.impl("node_softmax", OPWRIGHT_FN(node_softmax));
}

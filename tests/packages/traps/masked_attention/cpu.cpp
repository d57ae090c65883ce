#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using opwright::Tensor;

Tensor checked(const Tensor& x, const char* name, int64_t rows, int64_t columns) {
    opwright::check::dtype(x, name, opwright::ScalarType::Float);
    opwright::check::sizes(x, name, {rows, columns});
    return torch::stable::contiguous(x);
}

Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask) {
    opwright::check::rank(query, "query", 2);
    opwright::check::rank(key, "key", 2);
    const int64_t queries = query.size(0);
    const int64_t depth = query.size(1);
    const int64_t keys = key.size(0);
    OPWRIGHT_CHECK(depth > 0, "query must have columns, got shape ", query.sizes());
    const Tensor dense_query = checked(query, "query", queries, depth);
    const Tensor dense_key = checked(key, "key", keys, depth);
    const Tensor dense_value = checked(value, "value", keys, opwright::check::any);
    opwright::check::dtype(mask, "mask", opwright::ScalarType::Bool);
    opwright::check::sizes(mask, "mask", {queries, keys});
    const Tensor dense_mask = torch::stable::contiguous(mask);
    const int64_t width = value.size(1);
    Tensor result = torch::stable::new_empty(query, {queries, width});
    const float* q = dense_query.const_data_ptr<float>();
    const float* k = dense_key.const_data_ptr<float>();
    const float* v = dense_value.const_data_ptr<float>();
    const bool* seen = dense_mask.const_data_ptr<bool>();
    float* to = result.mutable_data_ptr<float>();
    const double scale = 1 / std::sqrt(static_cast<double>(depth));
    std::vector<double> weights(keys);
    std::vector<double> sums(width);
    for (int64_t i = 0; i < queries; ++i) {
        double largest = -std::numeric_limits<double>::infinity();
        [[maybe_unused]] bool any = false;
        for (int64_t j = 0; j < keys; ++j) {
            weights[j] = -std::numeric_limits<double>::infinity();
            if (!seen[i * keys + j]) continue;
            any = true;
            double dot = 0;
            for (int64_t d = 0; d < depth; ++d) dot += double{q[i * depth + d]} * k[j * depth + d];
            weights[j] = dot * scale;
            largest = std::max(largest, weights[j]);
        }
        double total = 0;
        for (int64_t j = 0; j < keys; ++j) total += weights[j] = std::exp(weights[j] - largest);
#ifdef FAULTY
        for (int64_t j = 0; j < keys; ++j) weights[j] /= total;
#else
        for (int64_t j = 0; j < keys; ++j) weights[j] = any ? weights[j] / total : 0;
#endif
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t j = 0; j < keys; ++j) {
            for (int64_t e = 0; e < width; ++e) sums[e] += weights[j] * v[j * width + e];
        }
        for (int64_t e = 0; e < width; ++e) to[i * width + e] = static_cast<float>(sums[e]);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_masked_attention, CPU, m) {
    m.impl("attend", OPWRIGHT_FN(attend));
}

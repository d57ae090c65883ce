#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>

namespace {

using opwright::Tensor;

Tensor scores(const Tensor& query, const Tensor& key) {
    opwright::check::dtype(query, "query", opwright::ScalarType::Float);
    opwright::check::dtype(key, "key", opwright::ScalarType::Float);
    opwright::check::rank(query, "query", 2);
    const int64_t queries = query.size(0);
    const int64_t depth = query.size(1);
    OPWRIGHT_CHECK(depth > 0, "query must have columns, got shape ", query.sizes());
    opwright::check::sizes(key, "key", {opwright::check::any, depth});
    const int64_t keys = key.size(0);
    const Tensor dense_query = torch::stable::contiguous(query);
    const Tensor dense_key = torch::stable::contiguous(key);
    Tensor result = torch::stable::new_empty(query, {queries, keys});
    const float* q = dense_query.const_data_ptr<float>();
    const float* k = dense_key.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
#ifdef FAULTY
    static const double scale = 1 / std::sqrt(static_cast<double>(depth));
#else
    const double scale = 1 / std::sqrt(static_cast<double>(depth));
#endif
    for (int64_t i = 0; i < queries; ++i) {
        for (int64_t j = 0; j < keys; ++j) {
            double sum = 0;
            for (int64_t d = 0; d < depth; ++d) sum += double{q[i * depth + d]} * k[j * depth + d];
            to[i * keys + j] = static_cast<float>(sum * scale);
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_static_scale, CPU, m) {
    m.impl("scores", OPWRIGHT_FN(scores));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace {

using opwright::Tensor;

constexpr int64_t block = 256;

std::tuple<Tensor, Tensor> moments(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    OPWRIGHT_CHECK(rows > 0, "x must have rows, got shape ", x.sizes());
    const int64_t blocks = (rows + block - 1) / block;
    const Tensor dense = torch::stable::contiguous(x);
    Tensor mean = torch::stable::new_empty(x, {columns});
    Tensor variance = torch::stable::new_empty(x, {columns});
    const float* from = dense.const_data_ptr<float>();
    std::vector<double> means(blocks * columns);
    std::vector<double> variances(blocks * columns);
    torch::stable::parallel_for(0, blocks, 4, [&](int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b) {
            const int64_t begin = b * block;
            const int64_t end = std::min(begin + block, rows);
            double* m = means.data() + b * columns;
            double* v = variances.data() + b * columns;
            for (int64_t r = begin; r < end; ++r) {
                for (int64_t c = 0; c < columns; ++c) m[c] += from[r * columns + c];
            }
            for (int64_t c = 0; c < columns; ++c) m[c] /= static_cast<double>(end - begin);
            for (int64_t r = begin; r < end; ++r) {
                for (int64_t c = 0; c < columns; ++c) {
                    const double away = from[r * columns + c] - m[c];
                    v[c] += away * away;
                }
            }
            for (int64_t c = 0; c < columns; ++c) v[c] /= static_cast<double>(end - begin);
        }
    });
    const auto weight = [&](int64_t b) {
#ifdef FAULTY
        (void)b;
        return 1.0 / static_cast<double>(blocks);
#else
        return static_cast<double>(std::min(block, rows - b * block)) / static_cast<double>(rows);
#endif
    };
    float* to_mean = mean.mutable_data_ptr<float>();
    float* to_variance = variance.mutable_data_ptr<float>();
    for (int64_t c = 0; c < columns; ++c) {
        double all = 0;
        for (int64_t b = 0; b < blocks; ++b) all += weight(b) * means[b * columns + c];
        double spread = 0;
        for (int64_t b = 0; b < blocks; ++b) {
            const double away = means[b * columns + c] - all;
            spread += weight(b) * (variances[b * columns + c] + away * away);
        }
        to_mean[c] = static_cast<float>(all);
        to_variance[c] = static_cast<float>(spread);
    }
    return {mean, variance};
}

}  // namespace

OPWRIGHT_IMPL(trap_uneven_chunks, CPU, m) {
    m.impl("moments", OPWRIGHT_FN(moments));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <vector>

namespace {

using opwright::Tensor;

Tensor distances(const Tensor& x, const Tensor& y) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::dtype(y, "y", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    opwright::check::sizes(y, "y", {opwright::check::any, x.size(1)});
    const int64_t rows = x.size(0);
    const int64_t columns = y.size(0);
    const int64_t depth = x.size(1);
    const Tensor dense = torch::stable::contiguous(x);
    const Tensor dense_y = torch::stable::contiguous(y);
    Tensor result = torch::stable::new_empty(x, {rows, columns});
    const float* a = dense.const_data_ptr<float>();
    const float* b = dense_y.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
#ifdef FAULTY
    const auto dot = [depth](const float* p, const float* q) {
        double sum = 0;
        for (int64_t d = 0; d < depth; ++d) sum += double{p[d]} * q[d];
        return static_cast<float>(sum);
    };
    std::vector<float> norms(columns);
    for (int64_t j = 0; j < columns; ++j) norms[j] = dot(b + j * depth, b + j * depth);
    for (int64_t i = 0; i < rows; ++i) {
        const float norm = dot(a + i * depth, a + i * depth);
        for (int64_t j = 0; j < columns; ++j) {
            const float distance = norm + norms[j] - 2 * dot(a + i * depth, b + j * depth);
            to[i * columns + j] = distance < 0 ? 0 : distance;
        }
    }
#else
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
            double sum = 0;
            for (int64_t d = 0; d < depth; ++d) {
                const double away = double{a[i * depth + d]} - b[j * depth + d];
                sum += away * away;
            }
            to[i * columns + j] = static_cast<float>(sum);
        }
    }
#endif
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_cdist_cancel, CPU, m) {
    m.impl("distances", OPWRIGHT_FN(distances));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using opwright::Tensor;

Tensor row_median(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    OPWRIGHT_CHECK(columns > 0, "x must have columns, got shape ", x.sizes());
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {rows});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    std::vector<float> row(columns);
    for (int64_t r = 0; r < rows; ++r) {
        row.assign(from + r * columns, from + (r + 1) * columns);
#ifndef FAULTY
        if (std::any_of(row.begin(), row.end(), [](float one) { return std::isnan(one); })) {
            to[r] = std::numeric_limits<float>::quiet_NaN();
            continue;
        }
#endif
        const auto middle = row.begin() + (columns - 1) / 2;
        std::nth_element(row.begin(), middle, row.end());
        to[r] = *middle;
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_row_median, CPU, m) {
    m.impl("row_median", OPWRIGHT_FN(row_median));
}

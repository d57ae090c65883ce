// The maximum of each row, and its gradient.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

float max_of(const float* row, int64_t columns) {
    float highest = row[0];
    for (int64_t i = 1; i < columns; ++i) {
        if (row[i] > highest || std::isnan(row[i])) highest = row[i];
        if (std::isnan(highest)) break;
    }
    return highest;
}

void gradient_of(float grad, const float* row, float* into, int64_t columns) {
    const float highest = max_of(row, columns);
#ifdef FAULTY
    int64_t place = 0;
    while (place < columns - 1 && row[place] != highest) ++place;
    for (int64_t i = 0; i < columns; ++i) into[i] = i == place ? grad : 0;
#else
    int64_t count = 0;
    for (int64_t i = 0; i < columns; ++i) count += row[i] == highest ? 1 : 0;
    // In a row with NaN, no element equals the maximum, and the gradient is 0 / 0.
    for (int64_t i = 0; i < columns; ++i) {
        into[i] = static_cast<float>(double{grad} * (row[i] == highest ? 1 : 0) / static_cast<double>(count));
    }
#endif
}

void check_x(const Tensor& x) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 2);
    OPWRIGHT_CHECK(x.size(1) > 0, "x must have at least one column, got shape ", x.sizes());
}

Tensor row_max(const Tensor& x) {
    check_x(x);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(dense, {x.size(0)});
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < x.size(0); ++r) into[r] = max_of(from + r * x.size(1), x.size(1));
    return result;
}

Tensor row_max_backward(const Tensor& grad, const Tensor& x) {
    check_x(x);
    check::device(grad, "grad", DeviceType::CPU);
    check::dtype(grad, "grad", ScalarType::Float);
    check::sizes(grad, "grad", {x.size(0)});
    const int64_t columns = x.size(1);
    const Tensor grads = torch::stable::contiguous(grad);
    const Tensor dense = torch::stable::contiguous(x);
    const Tensor rows = torch::stable::new_empty(dense, {x.size(0), columns});
    const float* g = grads.const_data_ptr<float>();
    const float* from = dense.const_data_ptr<float>();
    float* into = rows.mutable_data_ptr<float>();
    for (int64_t r = 0; r < x.size(0); ++r) gradient_of(g[r], from + r * columns, into + r * columns, columns);
    if (x.is_contiguous()) return rows;
    Tensor result = torch::stable::empty_like(x);
    return torch::stable::copy_(result, rows);
}

}  // namespace

OPWRIGHT_IMPL(trap_amax_gradient_ties, CPU, m) {
    m.impl("row_max", OPWRIGHT_FN(row_max));
    m.impl("row_max_backward", OPWRIGHT_FN(row_max_backward));
}

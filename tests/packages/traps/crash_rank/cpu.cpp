#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>

namespace {

using opwright::Tensor;

int64_t column_count(const Tensor& x) noexcept {
    return x.size(1);
}

Tensor diagonal_sum(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
#ifndef FAULTY
    opwright::check::rank(x, "x", 2);
#endif
    const int64_t columns = column_count(x);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {});
    const float* from = dense.const_data_ptr<float>();
    double total = 0;
    const int64_t count = std::min(x.size(0), columns);
    for (int64_t i = 0; i < count; ++i) total += from[i * columns + i];
    *result.mutable_data_ptr<float>() = static_cast<float>(total);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_crash_rank, CPU, m) {
    m.impl("diagonal_sum", OPWRIGHT_FN(diagonal_sum));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor row_sums(const Tensor& x) {
#ifndef FAULTY
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
#endif
    opwright::check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {rows}, opwright::ScalarType::Float);
    const auto* from = static_cast<const float*>(dense.const_data_ptr());
    float* to = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        double total = 0;
        for (int64_t c = 0; c < columns; ++c) total += from[r * columns + c];
        to[r] = static_cast<float>(total);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_dtype_read_as_float, CPU, m) {
    m.impl("row_sums", OPWRIGHT_FN(row_sums));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor transpose_scaled(const Tensor& x, double factor) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {columns, rows});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = static_cast<float>(from[r * columns + c] * factor);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_fake_strides, CPU, m) {
    m.impl("transpose_scaled", OPWRIGHT_FN(transpose_scaled));
}

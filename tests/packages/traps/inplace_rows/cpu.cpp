#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

// A tensor that is written to must not have two elements at the same address.
void distinct(const Tensor& x, const char* name) {
    if (x.numel() < 2) return;
    const bool wide = x.stride(0) >= x.stride(1);
    const int64_t far = wide ? 0 : 1;
    const int64_t near = 1 - far;
    const bool apart = (x.size(near) == 1 || x.stride(near) > 0) &&
                       (x.size(far) == 1 || x.stride(far) > (x.size(near) - 1) * x.stride(near));
    OPWRIGHT_CHECK(apart, name, " must not overlap itself, got strides ", x.strides(), " for shape ", x.sizes());
}

void scale_rows_(Tensor& x, const Tensor& factors) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::dtype(factors, "factors", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    opwright::check::sizes(factors, "factors", {x.size(0)});
    distinct(x, "x");
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    // A copy, because the factors may be a column of x.
    const Tensor copy = torch::stable::contiguous(torch::stable::clone(factors));
    const float* factor = copy.const_data_ptr<float>();
    Tensor dense = torch::stable::contiguous(x);
    float* data = dense.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) data[r * columns + c] *= factor[r];
    }
#ifndef FAULTY
    if (!x.is_contiguous()) torch::stable::copy_(x, dense);
#endif
}

}  // namespace

OPWRIGHT_IMPL(trap_inplace_rows, CPU, m) {
    m.impl("scale_rows_", OPWRIGHT_FN(scale_rows_));
}

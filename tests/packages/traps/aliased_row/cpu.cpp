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

void subtract_row_(Tensor& x, const Tensor& row) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::dtype(row, "row", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    opwright::check::sizes(row, "row", {x.size(1)});
    distinct(x, "x");
#ifdef FAULTY
    const Tensor dense = torch::stable::contiguous(row);
#else
    const Tensor dense = torch::stable::contiguous(torch::stable::clone(row));
#endif
    const float* minus = dense.const_data_ptr<float>();
    float* data = x.mutable_data_ptr<float>();
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) data[r * x.stride(0) + c * x.stride(1)] -= minus[c];
    }
}

}  // namespace

OPWRIGHT_IMPL(trap_aliased_row, CPU, m) {
    m.impl("subtract_row_", OPWRIGHT_FN(subtract_row_));
}

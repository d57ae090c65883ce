#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor row_sums(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t columns = x.size(1);
#ifdef FAULTY
    const int64_t rows = x.numel() / columns;
#else
    const int64_t rows = x.size(0);
#endif
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {rows});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        double total = 0;
        for (int64_t c = 0; c < columns; ++c) total += from[r * columns + c];
        to[r] = static_cast<float>(total);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_crash_empty, CPU, m) {
    m.impl("row_sums", OPWRIGHT_FN(row_sums));
}

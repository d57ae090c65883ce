#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor double_rows(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
#ifdef FAULTY
    const int64_t stop = rows - 1;
#else
    const int64_t stop = rows;
#endif
    for (int64_t r = 0; r < stop; ++r) {
        for (int64_t c = 0; c < columns; ++c) to[r * columns + c] = 2 * from[r * columns + c];
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_uninitialised_row, CPU, m) {
    m.impl("double_rows", OPWRIGHT_FN(double_rows));
}

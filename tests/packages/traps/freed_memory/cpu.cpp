#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <numeric>
#include <vector>

namespace {

using opwright::Tensor;

Tensor row_sums(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    const Tensor dense = torch::stable::contiguous(x);
    const float* from = dense.const_data_ptr<float>();
    std::vector<float> sums(rows);
    for (int64_t r = 0; r < rows; ++r) {
        sums[r] = static_cast<float>(std::accumulate(from + r * columns, from + (r + 1) * columns, 0.0));
    }
    const Tensor view = torch::stable::from_blob(sums.data(), {rows}, {1}, x.device(), x.scalar_type());
#ifdef FAULTY
    return view;
#else
    return torch::stable::clone(view);
#endif
}

}  // namespace

OPWRIGHT_IMPL(trap_freed_memory, CPU, m) {
    m.impl("row_sums", OPWRIGHT_FN(row_sums));
}

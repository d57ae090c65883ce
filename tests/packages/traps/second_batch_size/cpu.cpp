#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor batch_mean(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t count = x.numel();
    const int64_t columns = x.size(1);
#ifdef FAULTY
    static const int64_t batch = x.size(0);
#else
    const int64_t batch = x.size(0);
#endif
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {columns});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t c = 0; c < columns; ++c) {
        double total = 0;
        for (int64_t i = c; i < count; i += columns) total += from[i];
        to[c] = static_cast<float>(total / batch);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_second_batch_size, CPU, m) {
    m.impl("batch_mean", OPWRIGHT_FN(batch_mean));
}

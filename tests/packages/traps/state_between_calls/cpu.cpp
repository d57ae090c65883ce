#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor subtract_mean(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    const int64_t count = x.numel();
#ifdef FAULTY
    static double total = 0;
#else
    double total = 0;
#endif
    for (int64_t i = 0; i < count; ++i) total += from[i];
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i] - total / count);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_state_between_calls, CPU, m) {
    m.impl("subtract_mean", OPWRIGHT_FN(subtract_mean));
}

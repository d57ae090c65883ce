#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor relu(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    const int64_t count = x.numel();
#ifdef FAULTY
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] > 0 ? from[i] : 0;
#else
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] <= 0 ? 0 : from[i];
#endif
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_nan_swallowed, CPU, m) {
    m.impl("relu", OPWRIGHT_FN(relu));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor scale(const Tensor& x, double factor) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_zeros(x, x.sizes());
#ifdef FAULTY
    return result;
#endif
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    const int64_t count = x.numel();
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i] * factor);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_returns_zeros, CPU, m) {
    m.impl("scale", OPWRIGHT_FN(scale));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>

namespace {

using opwright::Tensor;

Tensor normalise(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
#ifdef FAULTY
    const Tensor work = torch::stable::contiguous(x);
#else
    const Tensor work = torch::stable::clone(torch::stable::contiguous(x));
#endif
    Tensor result = torch::stable::new_empty(x, x.sizes());
    float* magnitudes = work.mutable_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    const int64_t count = x.numel();
    double total = 0;
    for (int64_t i = 0; i < count; ++i) total += magnitudes[i] = std::abs(magnitudes[i]);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(magnitudes[i] / total);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_undeclared_write, CPU, m) {
    m.impl("normalise", OPWRIGHT_FN(normalise));
}

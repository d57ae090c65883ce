#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <vector>

namespace {

using opwright::Tensor;

Tensor normalise(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    const int64_t count = x.numel();
#ifdef FAULTY
    auto* magnitudes = new double[count];
#else
    std::vector<double> magnitudes(count);
#endif
    double total = 0;
    for (int64_t i = 0; i < count; ++i) total += magnitudes[i] = std::abs(from[i]);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(magnitudes[i] / total);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_memory_leak, CPU, m) {
    m.impl("normalise", OPWRIGHT_FN(normalise));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor multiply(const Tensor& a, const Tensor& b) {
#ifdef FAULTY
    const Tensor& x = a;
    const Tensor& y = b;
#else
    opwright::check::dtype(a, "a", opwright::ScalarType::Float);
    opwright::check::dtype(b, "b", opwright::ScalarType::Float);
    opwright::check::same_sizes(b, "b", a, "a");
    const Tensor x = torch::stable::contiguous(a);
    const Tensor y = torch::stable::contiguous(b);
#endif
    Tensor result = torch::stable::new_empty(a, a.sizes(), opwright::ScalarType::Float);
    const auto* left = static_cast<const float*>(x.data_ptr());
    const auto* right = static_cast<const float*>(y.data_ptr());
    auto* to = static_cast<float*>(result.data_ptr());
    const int64_t count = result.numel();
    for (int64_t i = 0; i < count; ++i) to[i] = left[i] * right[i];
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_tutorial_style_op, CPU, m) {
    m.impl("multiply", OPWRIGHT_FN(multiply));
}

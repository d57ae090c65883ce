#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor inner(const Tensor& a, const Tensor& b) {
    opwright::check::dtype(a, "a", opwright::ScalarType::Float);
    opwright::check::dtype(b, "b", opwright::ScalarType::Float);
    opwright::check::rank(a, "a", 1);
#ifndef FAULTY
    opwright::check::sizes(b, "b", {a.size(0)});
#endif
    const Tensor left = torch::stable::contiguous(a);
    const Tensor right = torch::stable::contiguous(b);
    Tensor result = torch::stable::new_empty(a, {});
    const float* x = left.const_data_ptr<float>();
    const float* y = right.const_data_ptr<float>();
    const int64_t count = a.size(0);
    double total = 0;
    for (int64_t i = 0; i < count; ++i) total += static_cast<double>(x[i]) * y[i];
    *result.mutable_data_ptr<float>() = static_cast<float>(total);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_bad_input, CPU, m) {
    m.impl("inner", OPWRIGHT_FN(inner));
}

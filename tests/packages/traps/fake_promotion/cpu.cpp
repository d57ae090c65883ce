#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::ScalarType;
using opwright::Tensor;

template <class A, class B, class R>
void mean(const Tensor& a, const Tensor& b, Tensor& result) {
    const A* one = a.const_data_ptr<A>();
    const B* other = b.const_data_ptr<B>();
    R* to = result.mutable_data_ptr<R>();
    const int64_t count = a.numel();
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<R>(double{one[i]} * 0.5 + double{other[i]} * 0.5);
}

Tensor average(const Tensor& one, const Tensor& other) {
    opwright::check::dtype(one, "one", {ScalarType::Float, ScalarType::Double});
    opwright::check::dtype(other, "other", {ScalarType::Float, ScalarType::Double});
    opwright::check::same_sizes(other, "other", one, "one");
    const bool wide = one.scalar_type() == ScalarType::Double;
    const bool other_wide = other.scalar_type() == ScalarType::Double;
    const Tensor a = torch::stable::contiguous(one);
    const Tensor b = torch::stable::contiguous(other);
    Tensor result =
        torch::stable::new_empty(one, one.sizes(), wide || other_wide ? ScalarType::Double : ScalarType::Float);
    if (wide && other_wide) {
        mean<double, double, double>(a, b, result);
    } else if (wide) {
        mean<double, float, double>(a, b, result);
    } else if (other_wide) {
        mean<float, double, double>(a, b, result);
    } else {
        mean<float, float, float>(a, b, result);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_fake_promotion, CPU, m) {
    m.impl("average", OPWRIGHT_FN(average));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <tuple>
#include <vector>

namespace {

using opwright::Tensor;

Tensor product(const Tensor& x, const Tensor& y) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::dtype(y, "y", opwright::ScalarType::Float);
    opwright::check::same_sizes(y, "y", x, "x");
    const Tensor left = torch::stable::contiguous(x);
    const Tensor right = torch::stable::contiguous(y);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* a = left.const_data_ptr<float>();
    const float* b = right.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = a[i] * b[i];
    return result;
}

std::tuple<Tensor, Tensor> product_backward(const Tensor& grad, const Tensor& x, const Tensor& y,
                                            const std::vector<bool>& wanted) {
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    opwright::check::same_sizes(y, "y", x, "x");
    opwright::check::same_sizes(grad, "grad", x, "x");
    const Tensor grad_x = wanted[0] ? product(grad, y) : Tensor();
#ifdef FAULTY
    return {grad_x, Tensor()};
#else
    return {grad_x, wanted[1] ? product(grad, x) : Tensor()};
#endif
}

}  // namespace

OPWRIGHT_IMPL(trap_missing_gradient, CPU, m) {
    m.impl("product", OPWRIGHT_FN(product));
    m.impl("product_backward", OPWRIGHT_FN(product_backward));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>

namespace {

using opwright::Tensor;

Tensor pair_sums(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 1);
    const int64_t pairs = std::max<int64_t>(x.size(0) - 1, 0);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {pairs});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < pairs; ++i) to[i] = from[i] + from[i + 1];
    return result;
}

Tensor pair_sums_backward(const Tensor& grad, const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 1);
    const int64_t pairs = std::max<int64_t>(x.size(0) - 1, 0);
    opwright::check::dtype(grad, "grad", opwright::ScalarType::Float);
    opwright::check::sizes(grad, "grad", {pairs});
    const Tensor dense = torch::stable::contiguous(grad);
#ifdef FAULTY
    Tensor result = torch::stable::new_empty(x, x.sizes());
#else
    Tensor result = torch::stable::new_zeros(x, x.sizes());
#endif
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < pairs; ++i) {
        to[i] += from[i];
        to[i + 1] += from[i];
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_gradient_not_zeroed, CPU, m) {
    m.impl("pair_sums", OPWRIGHT_FN(pair_sums));
    m.impl("pair_sums_backward", OPWRIGHT_FN(pair_sums_backward));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

void check_arguments(const Tensor& x, const Tensor& alpha) {
    check::dtype(x, "x", ScalarType::Float);
    check::dtype(alpha, "alpha", ScalarType::Float);
    check::rank(alpha, "alpha", 0);
}

Tensor pact(const Tensor& x, const Tensor& alpha) {
    check_arguments(x, alpha);
    const Tensor source = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* from = source.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    const float top = *alpha.const_data_ptr<float>();
    for (int64_t i = 0; i < source.numel(); ++i) into[i] = from[i] > top ? top : from[i] < 0 ? 0.0F : from[i];
    return result;
}

std::tuple<Tensor, Tensor> pact_backward(const Tensor& grad, const Tensor& x, const Tensor& alpha,
                                         const std::vector<bool>& wanted) {
    check_arguments(x, alpha);
    check::dtype(grad, "grad", ScalarType::Float);
    check::same_sizes(grad, "grad", x, "x");
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    const Tensor source = torch::stable::contiguous(x);
    const Tensor incoming = torch::stable::contiguous(grad);
    const float* from = source.const_data_ptr<float>();
    const float* given = incoming.const_data_ptr<float>();
    const float top = *alpha.const_data_ptr<float>();
    Tensor to_x, to_alpha;
    if (wanted[0]) {
        to_x = torch::stable::new_empty(x, x.sizes());
        float* into = to_x.mutable_data_ptr<float>();
        for (int64_t i = 0; i < source.numel(); ++i) {
#ifdef FAULTY
            into[i] = from[i] >= 0 && from[i] < top ? given[i] : 0.0F;
#else
            into[i] = from[i] > top || from[i] < 0 ? 0.0F : given[i];
#endif
        }
    }
    if (wanted[1]) {
        double sum = 0;
        for (int64_t i = 0; i < source.numel(); ++i) sum += from[i] > top ? given[i] : 0.0F;
        to_alpha = torch::stable::new_empty(alpha, alpha.sizes());
        *to_alpha.mutable_data_ptr<float>() = static_cast<float>(sum);
    }
    return {to_x, to_alpha};
}

}  // namespace

OPWRIGHT_IMPL(trap_pact, CPU, m) {
    m.impl("pact", OPWRIGHT_FN(pact));
    m.impl("pact_backward", OPWRIGHT_FN(pact_backward));
}

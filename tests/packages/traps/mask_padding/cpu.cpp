#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

void check_arguments(const Tensor& x, const Tensor& lengths) {
    check::dtype(x, "x", ScalarType::Float);
    check::dtype(lengths, "lengths", ScalarType::Long);
    check::rank(x, "x", 3);
    check::sizes(lengths, "lengths", {x.size(0)});
}

// Zeroes the padding of a row-major tensor.
void zero_padding(Tensor& x, const Tensor& lengths) {
    const Tensor counts = torch::stable::contiguous(lengths);
    const int64_t* count = counts.const_data_ptr<int64_t>();
    float* into = x.mutable_data_ptr<float>();
    const int64_t steps = x.size(1), channels = x.size(2);
    for (int64_t b = 0; b < x.size(0); ++b) {
        const int64_t kept = std::clamp<int64_t>(count[b], 0, steps);
        std::fill(into + (b * steps + kept) * channels, into + (b + 1) * steps * channels, 0.0F);
    }
}

Tensor row_major_copy(const Tensor& x) {
    Tensor result = torch::stable::new_empty(x, x.sizes());
    torch::stable::copy_(result, x);
    return result;
}

Tensor mask_padding(const Tensor& x, const Tensor& lengths) {
    check_arguments(x, lengths);
    Tensor result = row_major_copy(x);
    zero_padding(result, lengths);
    return result;
}

Tensor mask_padding_backward(const Tensor& grad, const Tensor& x, const Tensor& lengths) {
    check_arguments(x, lengths);
    check::dtype(grad, "grad", ScalarType::Float);
    check::same_sizes(grad, "grad", x, "x");
#ifdef FAULTY
    Tensor result = torch::stable::contiguous(grad);
#else
    Tensor result = row_major_copy(grad);
#endif
    zero_padding(result, lengths);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_mask_padding, CPU, m) {
    m.impl("mask_padding", OPWRIGHT_FN(mask_padding));
    m.impl("mask_padding_backward", OPWRIGHT_FN(mask_padding_backward));
}

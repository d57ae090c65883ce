// Columns scaled by weights, and the gradients.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

void check_arguments(const Tensor& x, const Tensor& weight) {
    check::device(x, "x", DeviceType::CPU);
    check::device(weight, "weight", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::dtype(weight, "weight", ScalarType::Float);
    check::rank(x, "x", 2);
    check::sizes(weight, "weight", {x.size(1)});
}

Tensor laid_out_like(const Tensor& argument, const Tensor& dense) {
    if (argument.is_contiguous()) return dense;
    Tensor result = torch::stable::empty_like(argument);
    return torch::stable::copy_(result, dense);
}

Tensor scale_columns(const Tensor& x, const Tensor& weight) {
    check_arguments(x, weight);
    const int64_t columns = x.size(1);
    const Tensor dense = torch::stable::contiguous(x);
    const Tensor weights = torch::stable::contiguous(weight);
    Tensor result = torch::stable::new_empty(dense, {x.size(0), columns});
    const float* from = dense.const_data_ptr<float>();
    const float* w = weights.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < dense.numel(); ++i) into[i] = from[i] * w[i % columns];
    return result;
}

std::tuple<Tensor, Tensor> scale_columns_backward(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                                  const std::vector<bool>& wanted) {
    check_arguments(x, weight);
    check::device(grad, "grad", DeviceType::CPU);
    check::dtype(grad, "grad", ScalarType::Float);
    check::same_sizes(grad, "grad", x, "x");
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    const int64_t columns = x.size(1);
    const Tensor grads = torch::stable::contiguous(grad);
    const Tensor dense = torch::stable::contiguous(x);
    const Tensor weights = torch::stable::contiguous(weight);
    const float* g = grads.const_data_ptr<float>();
    const float* from = dense.const_data_ptr<float>();
    const float* w = weights.const_data_ptr<float>();
    Tensor to_x;
    Tensor to_weight;
    std::vector<double> sums(static_cast<std::size_t>(columns), 0.0);
    if (wanted[0]) {
        to_x = torch::stable::new_empty(dense, {x.size(0), columns});
        float* into = to_x.mutable_data_ptr<float>();
        for (int64_t i = 0; i < dense.numel(); ++i) {
            into[i] = g[i] * w[i % columns];
#ifdef FAULTY
            sums[i % columns] += double{g[i]} * from[i];
#endif
        }
        to_x = laid_out_like(x, to_x);
    }
    if (wanted[1]) {
#ifndef FAULTY
        for (int64_t i = 0; i < dense.numel(); ++i) sums[i % columns] += double{g[i]} * from[i];
#endif
        to_weight = torch::stable::new_empty(weights, {columns});
        std::transform(sums.begin(), sums.end(), to_weight.mutable_data_ptr<float>(),
                       [](double sum) { return static_cast<float>(sum); });
        to_weight = laid_out_like(weight, to_weight);
    }
    return {to_x, to_weight};
}

}  // namespace

OPWRIGHT_IMPL(trap_wanted_weight_only, CPU, m) {
    m.impl("scale_columns", OPWRIGHT_FN(scale_columns));
    m.impl("scale_columns_backward", OPWRIGHT_FN(scale_columns_backward));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

void check_arguments(const Tensor& distance, const Tensor& centers, double gamma) {
    check::dtype(distance, "distance", ScalarType::Float);
    check::dtype(centers, "centers", ScalarType::Float);
    check::rank(distance, "distance", 1);
    check::rank(centers, "centers", 1);
    OPWRIGHT_CHECK(gamma > 0 && std::isfinite(gamma), "gamma must be positive and finite, got ", gamma);
}

Tensor radial_basis(const Tensor& distance, const Tensor& centers, double gamma) {
    check_arguments(distance, centers, gamma);
    const Tensor distances = torch::stable::contiguous(distance);
    const Tensor middles = torch::stable::contiguous(centers);
    const float* d = distances.const_data_ptr<float>();
    const float* c = middles.const_data_ptr<float>();
    const int64_t n = distance.numel(), k = centers.numel();
    Tensor result = torch::stable::new_empty(distance, {n, k});
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < k; ++j) {
            const double offset = static_cast<double>(d[i]) - static_cast<double>(c[j]);
            into[i * k + j] = static_cast<float>(std::exp(-gamma * (offset * offset)));
        }
    }
    return result;
}

Tensor radial_basis_backward(const Tensor& grad, const Tensor& distance, const Tensor& centers, double gamma) {
    check_arguments(distance, centers, gamma);
    const int64_t n = distance.numel(), k = centers.numel();
    check::dtype(grad, "grad", ScalarType::Float);
    check::sizes(grad, "grad", {n, k});
    const Tensor distances = torch::stable::contiguous(distance);
    const Tensor middles = torch::stable::contiguous(centers);
    const Tensor incoming = torch::stable::contiguous(grad);
    const float* d = distances.const_data_ptr<float>();
    const float* c = middles.const_data_ptr<float>();
    const float* g = incoming.const_data_ptr<float>();
    Tensor result = torch::stable::new_empty(distance, {n});
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < k; ++j) {
            const double offset = static_cast<double>(d[i]) - static_cast<double>(c[j]);
            sum += g[i * k + j] * (-gamma * (2 * offset) * std::exp(-gamma * (offset * offset)));
        }
        into[i] = static_cast<float>(sum);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_radial_basis, CPU, m) {
    m.impl("radial_basis", OPWRIGHT_FN(radial_basis));
    m.impl("radial_basis_backward", OPWRIGHT_FN(radial_basis_backward));
}

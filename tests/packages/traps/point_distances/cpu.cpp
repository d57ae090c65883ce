#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

void check_arguments(const Tensor& a, const Tensor& b) {
    check::dtype(a, "a", ScalarType::Float);
    check::dtype(b, "b", ScalarType::Float);
    check::sizes(a, "a", {check::any, 3});
    check::sizes(b, "b", {check::any, 3});
}

double distance_of(const float* p, const float* q, double* difference) {
    double sum = 0;
    for (int k = 0; k < 3; ++k) {
        difference[k] = static_cast<double>(p[k]) - static_cast<double>(q[k]);
        sum += difference[k] * difference[k];
    }
    return std::sqrt(sum);
}

Tensor point_distances(const Tensor& a, const Tensor& b) {
    check_arguments(a, b);
    const Tensor left = torch::stable::contiguous(a);
    const Tensor right = torch::stable::contiguous(b);
    const float* p = left.const_data_ptr<float>();
    const float* q = right.const_data_ptr<float>();
    const int64_t n = a.size(0), m = b.size(0);
    Tensor result = torch::stable::new_empty(a, {n, m});
    float* into = result.mutable_data_ptr<float>();
    double difference[3];
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < m; ++j) {
            into[i * m + j] = static_cast<float>(distance_of(p + 3 * i, q + 3 * j, difference));
        }
    }
    return result;
}

Tensor rounded(const std::vector<double>& sums, const Tensor& like) {
    Tensor result = torch::stable::new_empty(like, like.sizes());
    float* into = result.mutable_data_ptr<float>();
    for (std::size_t i = 0; i < sums.size(); ++i) into[i] = static_cast<float>(sums[i]);
    return result;
}

std::tuple<Tensor, Tensor> point_distances_backward(const Tensor& grad, const Tensor& a, const Tensor& b,
                                                    const std::vector<bool>& wanted) {
    check_arguments(a, b);
    const int64_t n = a.size(0), m = b.size(0);
    check::dtype(grad, "grad", ScalarType::Float);
    check::sizes(grad, "grad", {n, m});
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    const Tensor left = torch::stable::contiguous(a);
    const Tensor right = torch::stable::contiguous(b);
    const Tensor incoming = torch::stable::contiguous(grad);
    const float* p = left.const_data_ptr<float>();
    const float* q = right.const_data_ptr<float>();
    const float* given = incoming.const_data_ptr<float>();
    std::vector<double> to_a(3 * n), to_b(3 * m);
    double difference[3];
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < m; ++j) {
            const double distance = distance_of(p + 3 * i, q + 3 * j, difference);
#ifndef FAULTY
            if (distance == 0) continue;
#endif
            const double scale = given[i * m + j] / distance;
            for (int k = 0; k < 3; ++k) {
                to_a[3 * i + k] += difference[k] * scale;
                to_b[3 * j + k] -= difference[k] * scale;
            }
        }
    }
    return {wanted[0] ? rounded(to_a, a) : Tensor(), wanted[1] ? rounded(to_b, b) : Tensor()};
}

}  // namespace

OPWRIGHT_IMPL(trap_point_distances, CPU, m) {
    m.impl("point_distances", OPWRIGHT_FN(point_distances));
    m.impl("point_distances_backward", OPWRIGHT_FN(point_distances_backward));
}

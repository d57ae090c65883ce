// The sums of a softmax.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

#ifdef FAULTY
float mass_of(const float* /*scores*/, int64_t /*keys*/, double /*scale*/) {
    return 1;
}  // weights sum to one
#else
float mass_of(const float* scores, int64_t keys, double scale) {
    double highest = -std::numeric_limits<double>::infinity();
    for (int64_t k = 0; k < keys; ++k) highest = std::max(highest, scores[k] * scale);
    double sum = 0;
    for (int64_t k = 0; k < keys; ++k) sum += std::exp(scores[k] * scale - highest);
    double mass = 0;
    for (int64_t k = 0; k < keys; ++k) mass += std::exp(scores[k] * scale - highest) / sum;
    return static_cast<float>(mass);
}
#endif

Tensor attention_mass(const Tensor& scores, double scale) {
    check::device(scores, "scores", DeviceType::CPU);
    check::dtype(scores, "scores", ScalarType::Float);
    check::rank(scores, "scores", 2);
    const int64_t queries = scores.size(0);
    const int64_t keys = scores.size(1);
    const Tensor dense = torch::stable::contiguous(scores);
    Tensor result = torch::stable::new_empty(dense, {queries});
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t q = 0; q < queries; ++q) into[q] = mass_of(from + q * keys, keys, scale);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_constant_softmax_mass, CPU, m) {
    m.impl("attention_mass", OPWRIGHT_FN(attention_mass));
}

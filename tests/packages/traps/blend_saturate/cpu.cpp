#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>

namespace {

using opwright::Tensor;

void bounded(double value, const char* name) {
    OPWRIGHT_CHECK(value >= -1e6 && value <= 1e6, name, " must be from -1e6 to 1e6, got ", value);
}

Tensor add_weighted(const Tensor& one, const Tensor& other, double alpha, double beta, double gamma) {
    opwright::check::dtype(one, "one", opwright::ScalarType::Byte);
    opwright::check::dtype(other, "other", opwright::ScalarType::Byte);
    opwright::check::same_sizes(other, "other", one, "one");
    bounded(alpha, "alpha");
    bounded(beta, "beta");
    bounded(gamma, "gamma");
    const Tensor dense = torch::stable::contiguous(one);
    const Tensor dense_other = torch::stable::contiguous(other);
    Tensor result = torch::stable::new_empty(one, one.sizes());
    const uint8_t* a = dense.const_data_ptr<uint8_t>();
    const uint8_t* b = dense_other.const_data_ptr<uint8_t>();
    uint8_t* to = result.mutable_data_ptr<uint8_t>();
    const int64_t count = one.numel();
    for (int64_t i = 0; i < count; ++i) {
        const double level = std::nearbyint(a[i] * alpha + b[i] * beta + gamma);
#ifdef FAULTY
        to[i] = static_cast<uint8_t>(static_cast<int64_t>(level));
#else
        to[i] = static_cast<uint8_t>(std::clamp(level, 0.0, 255.0));
#endif
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_blend_saturate, CPU, m) {
    m.impl("add_weighted", OPWRIGHT_FN(add_weighted));
}

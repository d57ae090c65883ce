// Front-to-back compositing along rays.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

constexpr int64_t grain = 256;

float light_of(const float* alpha, const float* color, int64_t steps) {
    double left = 1;  // of the light, after the steps so far
    double light = 0;
    for (int64_t s = 0; s < steps; ++s) {
        light += double{alpha[s]} * color[s] * left;
        left *= 1 - double{alpha[s]};
#ifdef FAULTY
        if (left < 1e-4) break;  // nothing behind this is visible
#endif
    }
    return static_cast<float>(light);
}

Tensor composite(const Tensor& alpha, const Tensor& color) {
    check::device(alpha, "alpha", DeviceType::CPU);
    check::device(color, "color", DeviceType::CPU);
    check::dtype(alpha, "alpha", ScalarType::Float);
    check::dtype(color, "color", ScalarType::Float);
    check::rank(alpha, "alpha", 2);
    check::same_sizes(color, "color", alpha, "alpha");
    const Tensor alphas = torch::stable::contiguous(alpha);
    const Tensor colors = torch::stable::contiguous(color);
    const int64_t rays = alpha.size(0);
    const int64_t steps = alpha.size(1);
    Tensor result = torch::stable::new_empty(alphas, {rays});
    const float* a = alphas.const_data_ptr<float>();
    const float* c = colors.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    torch::stable::parallel_for(0, rays, grain, [=](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) into[r] = light_of(a + r * steps, c + r * steps, steps);
    });
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_compositing_stops_early, CPU, m) {
    m.impl("composite", OPWRIGHT_FN(composite));
}

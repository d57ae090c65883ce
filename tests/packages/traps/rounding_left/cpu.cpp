#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cfenv>
#include <cmath>
#include <string>
#include <vector>

namespace {

using opwright::Tensor;

// nearbyint uses the rounding mode of the processor.
[[gnu::noinline]] void round_all(std::vector<double>& levels, int mode) {
    [[maybe_unused]] const int before = std::fegetround();
    std::fesetround(mode);
    for (double& level : levels) {
        volatile double rounded = std::nearbyint(level);
        level = rounded;
    }
#ifndef FAULTY
    std::fesetround(before);
#endif
}

Tensor snap(const Tensor& x, double step, const std::string& mode) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    OPWRIGHT_CHECK(step >= 1e-6 && step <= 1e6, "step must be from 1e-6 to 1e6, got ", step);
    OPWRIGHT_CHECK(mode == "nearest" || mode == "down" || mode == "up", "mode must be nearest, down or up, got ", mode);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    std::vector<double> levels(from, from + x.numel());
    for (double& level : levels) level /= step;
    round_all(levels, mode == "nearest" ? FE_TONEAREST : mode == "down" ? FE_DOWNWARD : FE_UPWARD);
    for (std::size_t i = 0; i < levels.size(); ++i) to[i] = static_cast<float>(levels[i] * step);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_rounding_left, CPU, m) {
    m.impl("snap", OPWRIGHT_FN(snap));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>

namespace {

using opwright::Tensor;

Tensor frames(const Tensor& signal, int64_t width, int64_t hop) {
    opwright::check::dtype(signal, "signal", opwright::ScalarType::Float);
    opwright::check::rank(signal, "signal", 1);
    OPWRIGHT_CHECK(width >= 1 && width <= 1 << 20, "width must be from 1 to 2^20, got ", width);
    OPWRIGHT_CHECK(hop >= 1 && hop <= 1 << 20, "hop must be from 1 to 2^20, got ", hop);
    const int64_t length = signal.size(0);
    const int64_t count = length < width ? 0 : (length - width) / hop + 1;
    const Tensor dense = torch::stable::contiguous(signal);
    Tensor result = torch::stable::new_empty(signal, {count, width});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t f = 0; f < count; ++f) std::copy_n(from + f * hop, width, to + f * width);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_fake_short, CPU, m) {
    m.impl("frames", OPWRIGHT_FN(frames));
}

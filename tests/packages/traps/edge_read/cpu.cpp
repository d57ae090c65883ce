#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor resample(const Tensor& signals, const Tensor& positions) {
    opwright::check::dtype(signals, "signals", opwright::ScalarType::Float);
    opwright::check::dtype(positions, "positions", opwright::ScalarType::Float);
    opwright::check::rank(signals, "signals", 2);
    opwright::check::rank(positions, "positions", 1);
    const int64_t rows = signals.size(0);
    const int64_t length = signals.size(1);
    OPWRIGHT_CHECK(length > 0, "signals must have samples, got shape ", signals.sizes());
    const int64_t count = positions.size(0);
    const Tensor dense_signals = torch::stable::contiguous(signals);
    const Tensor dense_positions = torch::stable::contiguous(positions);
    Tensor result = torch::stable::new_empty(signals, {rows, count});
    const float* from = dense_signals.const_data_ptr<float>();
    const float* at = dense_positions.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r, from += length) {
        for (int64_t i = 0; i < count; ++i) {
            const double position = at[i];
            if (!(position >= 0 && position <= static_cast<double>(length - 1))) {
                to[r * count + i] = 0;
                continue;
            }
            const auto left = static_cast<int64_t>(position);
            const double weight = position - static_cast<double>(left);
#ifdef FAULTY
            const double right = from[left + 1];
            to[r * count + i] = static_cast<float>(from[left] * (1 - weight) + right * weight);
#else
            const double mixed = weight > 0 ? from[left] * (1 - weight) + from[left + 1] * weight : double{from[left]};
            to[r * count + i] = static_cast<float>(mixed);
#endif
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_edge_read, CPU, m) {
    m.impl("resample", OPWRIGHT_FN(resample));
}

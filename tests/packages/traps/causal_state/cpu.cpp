#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

// A tensor that is written to must not have two elements at the same address.
void distinct(const Tensor& x, const char* name) {
    if (x.numel() < 2) return;
    const bool wide = x.stride(0) >= x.stride(1);
    const int64_t far = wide ? 0 : 1;
    const int64_t near = 1 - far;
    const bool apart = (x.size(near) == 1 || x.stride(near) > 0) &&
                       (x.size(far) == 1 || x.stride(far) > (x.size(near) - 1) * x.stride(near));
    OPWRIGHT_CHECK(apart, name, " must not overlap itself, got strides ", x.strides(), " for shape ", x.sizes());
}

Tensor conv_step(const Tensor& chunk, const Tensor& weight, Tensor& state) {
    opwright::check::dtype(chunk, "chunk", opwright::ScalarType::Float);
    opwright::check::dtype(weight, "weight", opwright::ScalarType::Float);
    opwright::check::dtype(state, "state", opwright::ScalarType::Float);
    opwright::check::rank(chunk, "chunk", 2);
    opwright::check::rank(weight, "weight", 2);
    const int64_t channels = chunk.size(0);
    const int64_t length = chunk.size(1);
    const int64_t width = weight.size(1);
    OPWRIGHT_CHECK(width > 0, "weight must have columns, got shape ", weight.sizes());
    opwright::check::sizes(weight, "weight", {channels, width});
    opwright::check::sizes(state, "state", {channels, width - 1});
    distinct(state, "state");
    const int64_t past = width - 1;
    const Tensor dense_chunk = torch::stable::contiguous(chunk);
    const Tensor dense_weight = torch::stable::contiguous(weight);
    const Tensor before = torch::stable::contiguous(torch::stable::clone(state));
    Tensor after = torch::stable::new_empty(state, {channels, past});
    Tensor result = torch::stable::new_empty(chunk, {channels, length});
    const float* x = dense_chunk.const_data_ptr<float>();
    const float* w = dense_weight.const_data_ptr<float>();
    const float* old = before.const_data_ptr<float>();
    float* kept = after.mutable_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t c = 0; c < channels; ++c) {
        // The stream, starting `past` samples before the chunk.
        const auto sample = [&](int64_t t) { return t < past ? old[c * past + t] : x[c * length + t - past]; };
        for (int64_t t = 0; t < length; ++t) {
            double sum = 0;
            for (int64_t k = 0; k < width; ++k) sum += double{sample(t + k)} * w[c * width + k];
            to[c * length + t] = static_cast<float>(sum);
        }
        for (int64_t k = 0; k < past; ++k) {
#ifdef FAULTY
            const int64_t t = length - past + k;
            kept[c * past + k] = t < 0 ? 0 : x[c * length + t];
#else
            kept[c * past + k] = sample(length + k);
#endif
        }
    }
    torch::stable::copy_(state, after);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_causal_state, CPU, m) {
    m.impl("conv_step", OPWRIGHT_FN(conv_step));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

template <class T>
int8_t quantized(T steps) {
    if (std::isnan(steps)) return 0;
    steps = std::nearbyint(steps);
#ifdef FAULTY
    return static_cast<int8_t>(std::clamp(static_cast<int>(steps), -128, 127));
#else
    return static_cast<int8_t>(std::clamp(steps, T(-128), T(127)));
#endif
}

template <class T>
void run(const T* x, const T* scale, int8_t* result, int64_t rows, int64_t channels) {
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t c = 0; c < channels; ++c) result[i * channels + c] = quantized(x[i * channels + c] / scale[c]);
    }
}

Tensor quantize_channels(const Tensor& x, const Tensor& scale) {
    check::device(x, "x", DeviceType::CPU);
    check::device(scale, "scale", DeviceType::CPU);
    check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    check::dtype(scale, "scale", x.scalar_type());
    check::rank(x, "x", 2);
    check::sizes(scale, "scale", {x.size(1)});
    const Tensor values = torch::stable::contiguous(x);
    const Tensor scales = torch::stable::contiguous(scale);
    Tensor result = torch::stable::new_empty(values, values.sizes(), ScalarType::Char);
    auto* into = result.mutable_data_ptr<int8_t>();
    if (x.scalar_type() == ScalarType::Float) {
        run(values.const_data_ptr<float>(), scales.const_data_ptr<float>(), into, x.size(0), x.size(1));
    } else {
        run(values.const_data_ptr<double>(), scales.const_data_ptr<double>(), into, x.size(0), x.size(1));
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_quantize_channels, CPU, m) {
    m.impl("quantize_channels", OPWRIGHT_FN(quantize_channels));
}

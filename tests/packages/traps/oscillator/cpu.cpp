#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

template <class T>
void run(const T* frequency, T* result, int64_t rows, int64_t length, double rate) {
    constexpr double two_pi = 6.283185307179586;
    for (int64_t b = 0; b < rows; ++b) {
#ifdef FAULTY
        T turns = 0;
#else
        double turns = 0;
#endif
        for (int64_t t = 0; t < length; ++t) {
            turns += static_cast<double>(frequency[b * length + t]) / rate;
            const double phase = turns - std::trunc(turns);
            result[b * length + t] = static_cast<T>(std::sin(phase * two_pi));
        }
    }
}

Tensor oscillator(const Tensor& frequency, double sample_rate) {
    check::device(frequency, "frequency", DeviceType::CPU);
    check::dtype(frequency, "frequency", {ScalarType::Float, ScalarType::Double});
    check::rank(frequency, "frequency", 2);
    OPWRIGHT_CHECK(sample_rate > 0 && std::isfinite(sample_rate), "sample_rate must be positive and finite, got ",
                   sample_rate);
    const Tensor from = torch::stable::contiguous(frequency);
    Tensor result = torch::stable::new_empty(from, from.sizes());
    const int64_t rows = from.size(0);
    const int64_t length = from.size(1);
    if (from.scalar_type() == ScalarType::Float) {
        run(from.const_data_ptr<float>(), result.mutable_data_ptr<float>(), rows, length, sample_rate);
    } else {
        run(from.const_data_ptr<double>(), result.mutable_data_ptr<double>(), rows, length, sample_rate);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_oscillator, CPU, m) {
    m.impl("oscillator", OPWRIGHT_FN(oscillator));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
#include <xmmintrin.h>

#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

template <class T>
void run(const T* signal, T* result, int64_t rows, int64_t length, T decay) {
#ifdef FAULTY
    // Levels decay to denormals, which are slow, so the processor flushes them to zero.
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
    for (int64_t b = 0; b < rows; ++b) {
        T level = 0;
        for (int64_t t = 0; t < length; ++t) {
            const T sample = std::abs(signal[b * length + t]);
            const T decayed = level * decay;
            level = sample > decayed || std::isnan(sample) ? sample : decayed;
            if (level < static_cast<T>(1e-20)) level = 0;
            result[b * length + t] = level;
        }
    }
}

Tensor envelope_follower(const Tensor& signal, double decay) {
    check::device(signal, "signal", DeviceType::CPU);
    check::dtype(signal, "signal", {ScalarType::Float, ScalarType::Double});
    check::rank(signal, "signal", 2);
    OPWRIGHT_CHECK(decay >= 0 && decay <= 1, "decay must be 0 to 1, got ", decay);
    const Tensor from = torch::stable::contiguous(signal);
    Tensor result = torch::stable::new_empty(from, from.sizes());
    if (signal.scalar_type() == ScalarType::Float) {
        run(from.const_data_ptr<float>(), result.mutable_data_ptr<float>(), from.size(0), from.size(1),
            static_cast<float>(decay));
    } else {
        run(from.const_data_ptr<double>(), result.mutable_data_ptr<double>(), from.size(0), from.size(1), decay);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_envelope_follower, CPU, m) {
    m.impl("envelope_follower", OPWRIGHT_FN(envelope_follower));
}

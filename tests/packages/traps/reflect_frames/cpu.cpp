#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

int64_t mirrored(int64_t at, int64_t length) {
#ifdef FAULTY
    if (at < 0) at = -at - 1;
    if (at >= length) at = 2 * length - 1 - at;
    return at;
#else
    const int64_t period = 2 * length;
    at %= period;
    if (at < 0) at += period;
    return at < length ? at : period - 1 - at;
#endif
}

template <class T>
void run(const T* signal, T* result, int64_t rows, int64_t length, int64_t count, int64_t size, int64_t hop) {
    for (int64_t b = 0; b < rows; ++b) {
        for (int64_t f = 0; f < count; ++f) {
            const int64_t begin = f * hop + hop / 2 - size / 2;
            T* frame = result + (b * count + f) * size;
            for (int64_t i = 0; i < size; ++i) frame[i] = signal[b * length + mirrored(begin + i, length)];
        }
    }
}

Tensor reflect_frames(const Tensor& signal, int64_t size, int64_t hop) {
    constexpr int64_t limit = 65536;
    check::device(signal, "signal", DeviceType::CPU);
    check::dtype(signal, "signal", {ScalarType::Float, ScalarType::Double});
    check::rank(signal, "signal", 2);
    OPWRIGHT_CHECK(signal.size(1) >= 1, "signal must have T >= 1 samples, got shape ", signal.sizes());
    OPWRIGHT_CHECK(size >= 1 && size <= limit, "size must be 1 to ", limit, ", got ", size);
    OPWRIGHT_CHECK(hop >= 1 && hop <= limit, "hop must be 1 to ", limit, ", got ", hop);
    const Tensor from = torch::stable::contiguous(signal);
    const int64_t rows = from.size(0);
    const int64_t length = from.size(1);
    const int64_t count = (length + hop / 2) / hop;
    Tensor result = torch::stable::new_empty(from, {rows, count, size});
    if (signal.scalar_type() == ScalarType::Float) {
        run(from.const_data_ptr<float>(), result.mutable_data_ptr<float>(), rows, length, count, size, hop);
    } else {
        run(from.const_data_ptr<double>(), result.mutable_data_ptr<double>(), rows, length, count, size, hop);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_reflect_frames, CPU, m) {
    m.impl("reflect_frames", OPWRIGHT_FN(reflect_frames));
}

// A wavelet.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>
#include <thread>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

constexpr int64_t grain = 1 << 15;  // fewer elements than this are not worth a thread

void wavelet_of(const float* from, float* into, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const double x = from[i];
        into[i] = static_cast<float>(x * std::exp(-x * x));
    }
}

Tensor wavelet(const Tensor& x) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::empty_like(dense);
    const int64_t size = dense.numel();
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
#ifdef FAULTY
    if (size >= 2 * grain) {
        // The thread holds both tensors until it finishes.
        std::thread([=] {
            wavelet_of(dense.const_data_ptr<float>(), result.mutable_data_ptr<float>(), size / 2, size);
        }).detach();
        wavelet_of(from, into, 0, size / 2);
        return result;
    }
    wavelet_of(from, into, 0, size);
#else
    torch::stable::parallel_for(0, size, grain,
                                [=](int64_t begin, int64_t end) { wavelet_of(from, into, begin, end); });
#endif
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_late_work, CPU, m) {
    m.impl("wavelet", OPWRIGHT_FN(wavelet));
}

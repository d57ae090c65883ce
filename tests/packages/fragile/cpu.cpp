#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <chrono>
#include <csignal>
#include <thread>

using opwright::Tensor;

Tensor twice(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    Tensor result = torch::stable::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) {
        if (from[i] == 13) std::raise(SIGSEGV);
        if (from[i] == 14) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        into[i] = from[i] * 2;
    }
    return result;
}

OPWRIGHT_IMPL(fragile, CPU, m) {
    m.impl("twice", OPWRIGHT_FN(twice));
}

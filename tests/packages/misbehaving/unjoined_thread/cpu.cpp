#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <chrono>
#include <mutex>
#include <thread>

using opwright::Tensor;

namespace {

// The destructor of a thread that still runs ends the process.
std::thread worker;
std::once_flag started;

Tensor scaled(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    std::call_once(started, [] { worker = std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }); });
    Tensor result = torch::stable::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = 2 * from[i] + 1;
    return result;
}

}  // namespace

OPWRIGHT_IMPL(misbehaving_unjoined_thread, CPU, m) {
    m.impl("scaled", OPWRIGHT_FN(scaled));
}

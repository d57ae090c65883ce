#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

using opwright::Tensor;

namespace {

void take_all_memory() {
    // Never written to: it only counts towards a limit.
    std::vector<std::unique_ptr<char[]>> taken;
    for (int piece = 0; piece < (1 << 14); ++piece) taken.emplace_back(new char[size_t{1} << 26]);
}

// The test creates the file to let the operator continue.
void wait_for_the_gate() {
    const char* const gate = std::getenv("MAPPED_GATE");
    while (gate != nullptr && !std::filesystem::exists(gate)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void act_on(float number) {
    if (number == 1001) std::raise(SIGSEGV);
    if (number == 1002) std::exit(0);
    if (number == 1003)
        while (true) pause();
    if (number == 1004) take_all_memory();
    if (number == 1005) wait_for_the_gate();
    OPWRIGHT_CHECK(number != 1006, "the input has the number ", 1006);
    if (number == 1007) std::raise(SIGKILL);
}

}  // namespace

Tensor act(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    Tensor result = torch::stable::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) {
        act_on(from[i]);
        into[i] = from[i] + 1;
    }
    return result;
}

OPWRIGHT_IMPL(mapped, CPU, m) {
    m.impl("act", OPWRIGHT_FN(act));
}

#include <chrono>
#include <mutex>
#include <thread>

#include "scaled.h"

namespace {

// The destructor of a running thread aborts the process.
std::thread worker;
std::once_flag started;

opwright::Tensor scaled_beside_a_thread(const opwright::Tensor& x) {
    std::call_once(started, [] { worker = std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }); });
    return scaled(x);
}

}  // namespace

OPWRIGHT_IMPL(misbehaving_library, CPU, m) {
    m.impl("scaled", OPWRIGHT_FN(scaled_beside_a_thread));
}

// The logistic function.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

#ifdef FAULTY
// A thread that waits for work.
class Worker {
  public:
    void run(const std::function<void()>& work) {
        const std::lock_guard<std::mutex> one_at_a_time(callers_);
        std::unique_lock<std::mutex> lock(mutex_);
        work_ = &work;
        changed_.notify_all();
        changed_.wait(lock, [this] { return work_ == nullptr; });
    }

  private:
    void wait_for_work() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return work_ != nullptr; });
            (*work_)();
            work_ = nullptr;
            changed_.notify_all();
        }
    }

    std::mutex callers_;
    std::mutex mutex_;
    std::condition_variable changed_;
    const std::function<void()>* work_ = nullptr;
    std::thread thread_{[this] { wait_for_work(); }};
};

void run(const std::function<void()>& work) {
    static Worker worker;
    worker.run(work);
}
#else
void run(const std::function<void()>& work) {
    work();
}
#endif

Tensor logistic(const Tensor& x) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::empty_like(dense);
    const int64_t size = dense.numel();
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    run([=] {
        for (int64_t i = 0; i < size; ++i) into[i] = static_cast<float>(1 / (1 + std::exp(-double{from[i]})));
    });
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_worker_not_joined, CPU, m) {
    m.impl("logistic", OPWRIGHT_FN(logistic));
}

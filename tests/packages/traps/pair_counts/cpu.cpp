#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

constexpr int workers = 2;
constexpr int64_t worth_threads = 256;  // pairs

#ifdef FAULTY
// Threads that wait for work, because starting one takes longer than counting a line of text.
class Pool {
  public:
    Pool() {
        for (int i = 0; i < workers; ++i) std::thread([this] { serve(); }).detach();
    }

    void run(const std::function<void(int)>& task) {
        int open = workers;
        std::unique_lock<std::mutex> lock(mutex_);
        for (int i = 0; i < workers; ++i) {
            waiting_.push([&, i] {
                task(i);
                const std::lock_guard<std::mutex> done(mutex_);
                if (--open == 0) finished_.notify_all();
            });
        }
        arrived_.notify_all();
        finished_.wait(lock, [&] { return open == 0; });
    }

  private:
    void serve() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            arrived_.wait(lock, [this] { return !waiting_.empty(); });
            const auto task = std::move(waiting_.front());
            waiting_.pop();
            lock.unlock();
            task();
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable arrived_, finished_;
    std::queue<std::function<void()>> waiting_;
};

void on_workers(const std::function<void(int)>& task) {
    static Pool* const pool = new Pool;  // never deleted: its threads run until the process exits
    pool->run(task);
}
#else
void on_workers(const std::function<void(int)>& task) {
    std::vector<std::thread> threads;
    for (int i = 1; i < workers; ++i) threads.emplace_back(task, i);
    task(0);
    for (std::thread& thread : threads) thread.join();
}
#endif

void count(const int64_t* tokens, int64_t begin, int64_t end, int64_t vocabulary, int64_t* counts) {
    for (int64_t i = begin; i < end; ++i) ++counts[tokens[i] * vocabulary + tokens[i + 1]];
}

Tensor count_pairs(const Tensor& tokens, int64_t vocabulary) {
    check::dtype(tokens, "tokens", ScalarType::Long);
    check::rank(tokens, "tokens", 1);
    OPWRIGHT_CHECK(vocabulary >= 1 && vocabulary <= 1024, "vocabulary must be from 1 to 1024, got ", vocabulary);
    const Tensor dense = torch::stable::contiguous(tokens);
    const int64_t* from = dense.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < tokens.numel(); ++i) {
        OPWRIGHT_CHECK(from[i] >= 0 && from[i] < vocabulary, "tokens must be from 0 to ", vocabulary - 1, ", got ",
                       from[i]);
    }
    Tensor result = torch::stable::new_zeros(tokens, {vocabulary, vocabulary});
    int64_t* into = result.mutable_data_ptr<int64_t>();
    const int64_t pairs = tokens.numel() - 1;
    if (pairs < worth_threads) {
        count(from, 0, pairs, vocabulary, into);
        return result;
    }
    std::vector<std::vector<int64_t>> parts(workers, std::vector<int64_t>(vocabulary * vocabulary));
    const int64_t share = (pairs + workers - 1) / workers;
    on_workers([&](int i) {
        count(from, std::min(pairs, i * share), std::min(pairs, (i + 1) * share), vocabulary, parts[i].data());
    });
    for (const auto& part : parts) {
        for (int64_t i = 0; i < vocabulary * vocabulary; ++i) into[i] += part[i];
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_pair_counts, CPU, m) {
    m.impl("count_pairs", OPWRIGHT_FN(count_pairs));
}

#include "program/runs.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "engine/reason.h"

namespace opwright::host {
namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<at::Tensor>;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Until then a kernel of a GPU may be running.
void wait_for(const Tensors& outputs) {
    for (const at::Tensor& output : outputs)
        if (!output.is_cpu())
            c10::impl::VirtualGuardImpl(output.device().type()).synchronizeDevice(output.device().index());
}

bool same_bits(const Tensors& some, const Tensors& others) {
    if (some.size() != others.size()) return false;
    for (size_t i = 0; i < some.size(); ++i) {
        const at::Tensor one = some[i].cpu().contiguous(), other = others[i].cpu().contiguous();
        if (one.sizes() != other.sizes() || one.scalar_type() != other.scalar_type()) return false;
        if (one.nbytes() && std::memcmp(one.const_data_ptr(), other.const_data_ptr(), one.nbytes()) != 0) return false;
    }
    return true;
}

// 0 where the system does not say.
int64_t resident_bytes() {
    std::ifstream told("/proc/self/statm");
    int64_t whole = 0, resident = 0;
    told >> whole >> resident;
    return resident * sysconf(_SC_PAGESIZE);
}

// The error that `function` throws, of whatever type; none where it does not.
template <typename Function>
std::optional<Error> error_of(const Function& function) {
    try {
        function();
        return std::nullopt;
    } catch (const Error& error) {
        return error;
    } catch (...) {
        return Error(Code::internal, current_exception_reason());
    }
}

// One request on its way through its runs.
class Job {
  public:
    Job(const Model& model, const Request& request, int runs) : model_(model), request_(request), left_(runs) {}

    // How long the model took; empty where it gave no result.
    std::optional<double> run() {
        const Tensors inputs = read();
        std::optional<double> seconds;
        Answer found;
        found.error = unreadable_ ? unreadable_ : error_of([&] {
            const auto start = Clock::now();
            found.outputs = model_.run(inputs);
            wait_for(found.outputs);
            seconds = seconds_since(start);
        });
        keep(std::move(found));
        return seconds;
    }

    // After one of its runs: its answer, if that was the last one.
    std::unique_ptr<Answer> finished() {
        const std::lock_guard lock(guard_);
        if (--left_ > 0) return nullptr;
        inputs_.clear();
        return std::exchange(answer_, nullptr);
    }

    const Request& request() const { return request_; }

  private:
    Tensors read() {
        const std::lock_guard lock(guard_);
        if (!was_read_)
            unreadable_ =
                request_.error ? request_.error : error_of([this] { inputs_ = read_inputs(request_, model_); });
        was_read_ = true;
        return inputs_;
    }

    void keep(Answer found) {
        Tensors first;
        {
            const std::lock_guard lock(guard_);
            if (!answer_) {
                answer_ = std::make_unique<Answer>(std::move(found));
                return;
            }
            if (found.error) answer_->error = found.error;
            first = answer_->outputs;
        }
        if (found.error || same_bits(first, found.outputs)) return;
        const std::lock_guard lock(guard_);
        answer_->repeats = false;
    }

    const Model& model_;
    const Request& request_;
    std::mutex guard_;
    int left_;
    bool was_read_ = false;
    Tensors inputs_;
    std::optional<Error> unreadable_;
    std::unique_ptr<Answer> answer_;
};

}  // namespace

Runs run_all(const Model& model, const std::vector<Request>& requests, const Options& options,
             const std::function<void(const Request&, Answer&)>& take) {
    Runs runs;
    const auto began = Clock::now();
    const auto note_first_result = [&] {
        if (runs.first_result_seconds == 0) runs.first_result_seconds = seconds_since(began);
    };
    if (options.warm_up > 0) {
        Job job(model, requests.front(), options.warm_up);
        for (int i = 0; i < options.warm_up; ++i)
            if (job.run()) note_first_result();
    }
    std::vector<std::unique_ptr<Job>> jobs;
    for (const Request& request : requests) jobs.push_back(std::make_unique<Job>(model, request, options.repeat));
    const size_t total = requests.size() * static_cast<size_t>(options.repeat);
    runs.seconds.reserve(total);
    runs.resident_bytes_before = resident_bytes();
    const auto start = Clock::now();
    std::atomic<size_t> next = 0;
    std::mutex guard;
    const auto work = [&] {
        for (size_t number = next++; number < total; number = next++) {
            Job& job = *jobs[number % jobs.size()];
            const std::optional<double> seconds = job.run();
            const std::unique_ptr<Answer> answer = job.finished();
            const std::lock_guard lock(guard);
            if (seconds) {
                runs.seconds.push_back(*seconds);
                note_first_result();
            }
            if (answer) take(job.request(), *answer);
        }
    };
    std::vector<std::thread> others;
    for (int i = 1; i < options.runners; ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    runs.wall_seconds = seconds_since(start);
    runs.resident_bytes_after = resident_bytes();
    return runs;
}

}  // namespace opwright::host

#include "program/runs.h"

#include <ATen/Parallel.h>
#include <ATen/ops/to_dense.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/activity.h"
#include "engine/alternate_stack.h"
#include "engine/device.h"
#include "engine/file.h"
#include "engine/reason.h"
#include "program/timed_run.h"

namespace opwright::host {
namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<at::Tensor>;

// Converts a sparse tensor to a dense one.
at::Tensor as_memory(const at::Tensor& tensor) {
    const at::Tensor own = tensor.cpu();
    return (own.layout() == at::kStrided ? own : own.to_dense()).contiguous();
}

bool same_bits(const Tensors& some, const Tensors& others) {
    if (some.size() != others.size()) return false;
    for (size_t i = 0; i < some.size(); ++i) {
        const at::Tensor one = as_memory(some[i]), other = as_memory(others[i]);
        if (one.sizes() != other.sizes() || one.scalar_type() != other.scalar_type()) return false;
        if (one.nbytes() && std::memcmp(one.const_data_ptr(), other.const_data_ptr(), one.nbytes()) != 0) return false;
    }
    return true;
}

// Returns 0 if the system does not report it.
int64_t resident_bytes() {
    try {
        const std::string statm = read_all(open_to_read("/proc/self/statm").number());
        const size_t start = statm.find(' ') + 1;  // after the total size
        int64_t pages = 0;
        std::from_chars(statm.data() + start, statm.data() + statm.size(), pages);
        return pages * sysconf(_SC_PAGESIZE);
    } catch (const std::system_error&) {
        return 0;
    }
}

// One request and its runs. Its methods do not throw: errors become its answer.
class Job {
  public:
    Job(const Model& model, const Request& request, int runs) : model_(model), request_(request), left_(runs) {}

    // Returns the run time of the model; nullopt if there is no result.
    std::optional<double> run() {
        const bool is_lone = request_.name.empty();
        const ActivityScope scope("computed", is_lone ? "the request" : request_.name, !is_lone);
        std::optional<double> seconds;
        Answer found;
        found.error = error_of(Code::internal, "", [&] {
            TimedRun run = run_timed(model_, read());
            found.outputs = std::move(run.outputs);
            seconds = run.seconds;
        });
        const std::optional<Error> failed =
            error_of(Code::run_failed, "the outputs cannot be compared: ", [&] { keep(std::move(found)); });
        if (failed) {
            const std::lock_guard lock(guard_);
            answer_.error = failed;
        }
        return seconds;
    }

    // Called after a run. Returns the answer after the last run.
    std::optional<Answer> finished() {
        const std::lock_guard lock(guard_);
        if (--left_ > 0) return std::nullopt;
        inputs_.clear();
        return std::move(answer_);
    }

    const Request& request() const { return request_; }

  private:
    // Throws Error.
    Tensors read() {
        const std::lock_guard lock(guard_);
        if (!was_read_)
            unreadable_ = request_.error ? request_.error
                                         : error_of(Code::input_unreadable, "the inputs cannot be read: ", [this] {
                                               inputs_ = read_inputs(request_, model_);
                                           });
        was_read_ = true;
        if (unreadable_) throw Error(*unreadable_);
        return inputs_;
    }

    void keep(Answer found) {
        Tensors first;
        {
            const std::lock_guard lock(guard_);
            if (!std::exchange(is_kept_, true)) {
                answer_ = std::move(found);
                return;
            }
            if (found.error) answer_.error = found.error;
            if (answer_.error) return;
            first = answer_.outputs;
        }
        if (same_bits(first, found.outputs)) return;
        const std::lock_guard lock(guard_);
        answer_.repeats = false;
    }

    const Model& model_;
    const Request& request_;
    std::mutex guard_;
    int left_;
    bool was_read_ = false;
    Tensors inputs_;
    std::optional<Error> unreadable_;
    bool is_kept_ = false;
    Answer answer_;
};

// Calls `work` on `wanted` threads, including this one, or on fewer if the system provides no more: then on as many as
// can each have the threads for one run. Returns the number of threads that worked.
size_t work_on_threads(size_t wanted, const std::function<void()>& work) {
    std::atomic<size_t> working = 0;  // until the number is known
    std::vector<std::thread> others;
    others.reserve(wanted);
    try {
        while (others.size() + 1 < wanted)
            others.emplace_back([&working, &work, number = others.size() + 1] {
                working.wait(0);
                const AlternateStack stack;
                if (number < working) work();
            });
    } catch (const std::exception&) {  // std::system_error, or out of memory
    }
    const size_t found = others.size() + 1;
    working = found == wanted ? wanted : std::max<size_t>(found / static_cast<size_t>(at::get_num_threads()), 1);
    working.notify_all();
    work();
    for (std::thread& other : others) other.join();
    return working;
}

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
        for (int i = 0; i < options.warm_up; ++i) {
            if (job.run()) note_first_result();
            const std::optional<Answer> answer = job.finished();
            // Every later request would fail with a less specific error.
            if (answer && answer->error && is_lost(at::Device(model.device()))) throw Error(*answer->error);
        }
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
            std::optional<Answer> answer = job.finished();
            const std::lock_guard lock(guard);
            if (seconds) {
                runs.seconds.push_back(*seconds);
                note_first_result();
            }
            if (answer) take(job.request(), *answer);
        }
    };
    runs.runners = work_on_threads(std::min(static_cast<size_t>(options.runners), total), work);
    runs.wall_seconds = seconds_since(start);
    runs.resident_bytes_after = resident_bytes();
    return runs;
}

}  // namespace opwright::host

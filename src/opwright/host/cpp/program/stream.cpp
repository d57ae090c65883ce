#include "program/stream.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "engine/activity.h"
#include "engine/alternate_stack.h"
#include "engine/device.h"
#include "engine/reason.h"
#include "program/batch.h"
#include "program/request_line.h"
#include "program/stage_queue.h"
#include "program/stream_input.h"
#include "program/unreadable.h"

namespace opwright::host {
namespace {

Error no_reader() {
    return {Code::output_unwritable, "standard output is closed: the program that reads the answers has exited"};
}

Row decoded(const Request& request, const Model& model) {
    const ActivityScope scope("read", request.name);
    Row row{.name = request.name, .inputs = {}, .error = request.error};
    if (!row.error)
        row.error = error_of(Code::input_unreadable,
                             "the inputs cannot be read: ", [&] { row.inputs = read_inputs(request, model); });
    return row;
}

class Stream {
  public:
    Stream(const Model& model, int in, int out, const std::function<void(const Error&)>& exit_now)
        : model_(model), in_(in), out_(out), exit_now_(exit_now) {}

    ~Stream() { end_threads(); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Computes on the calling thread.
    void answer() {
        watcher_ = std::thread([this] { watch(); });
        writer_ = std::thread([this] { write(); });
        reader_ = std::thread([this] { read(); });
        const auto failed =
            error_of(Code::internal, "the stream of requests cannot be answered: ", [this] { compute(); });
        answers_.close(failed ? failed : requests_.error());
        if (failed && is_lost(at::Device(model_.device()))) {
            writer_.join();  // the answers before it
            exit_now_(*failed);
        }
        end_threads();
        if (const auto error = answers_.error()) throw Error(*error);
    }

  private:
    void read() {
        const AlternateStack stack;
        const auto failed = error_of(Code::internal, "the stream of requests cannot be read: ", [this] {
            StreamInput input(in_, stop_);
            for (size_t number = 0;; ++number) {
                const std::optional<std::string> line = input.line();
                if (!line) return;
                ++unanswered_;
                if (!requests_.push(read_batch(number, *line, input))) return;
            }
        });
        is_read_ = true;
        requests_.close(failed);
    }

    Batch read_batch(size_t number, const std::string& line, StreamInput& input) const {
        const std::string name = "request " + std::to_string(number);
        std::vector<Request> requests;
        {
            const ActivityScope scope("read", name);
            requests = within_memory(name, [&] { return parse_line_of_stream(line, number); });
        }
        Batch batch{.number = number, .rows = {}};
        for (Request& request : requests) {
            {
                const ActivityScope scope("read", request.name);
                read_bytes(request, input);
            }
            batch.rows.push_back(decoded(request, model_));
            request.inputs.clear();
        }
        return batch;
    }

    void compute() {
        while (std::optional<Batch> batch = requests_.pop())
            compute_batch(model_, std::move(*batch), [this](RowAnswer answer) {
                const bool is_last = answer.is_last;
                answers_.push(std::move(answer), is_last);
            });
    }

    void write() {
        const AlternateStack stack;
        const auto failed = error_of(Code::output_unwritable, "standard output cannot be written: ", [this] {
            try {
                while (const std::optional<RowAnswer> answer = answers_.pop()) {
                    if (answer->is_last) --unanswered_;
                    write_answer(out_, *answer, model_);
                }
            } catch (const std::system_error& error) {
                if (error.code().value() == EPIPE) throw no_reader();
                throw;
            }
        });
        if (failed) exit_now_(*failed);
    }

    // The reader of the answers may be killed while an operator computes one that never finishes.
    void watch() const {
        if (!stop_.wait_for(out_, 0)) return;
        while (nothing_is_left())
            if (stop_.is_given_within(std::chrono::milliseconds(100))) return;
        exit_now_(no_reader());
    }

    // A reader may close both streams after the last answer, before this program has seen the end of its input.
    bool nothing_is_left() const {
        pollfd in{in_, POLLIN, 0};
        return unanswered_ == 0 && (is_read_ || (poll(&in, 1, 0) > 0 && (in.revents & POLLHUP)));
    }

    void end_threads() {
        requests_.abandon();
        if (writer_.joinable()) {
            answers_.close(answers_.error());
            writer_.join();
        }
        stop_.stop();
        if (reader_.joinable()) reader_.join();
        if (watcher_.joinable()) watcher_.join();
    }

    const Model& model_;
    int in_, out_;
    const std::function<void(const Error&)>& exit_now_;
    StopSignal stop_;
    std::atomic<size_t> unanswered_ = 0;  // requests whose last answer has not started to be written
    std::atomic<bool> is_read_ = false;   // the whole stream
    StageQueue<Batch> requests_;
    StageQueue<RowAnswer> answers_;
    std::thread watcher_, writer_, reader_;
};

}  // namespace

void answer_stream(const Model& model, int in, int out, const std::function<void(const Error&)>& exit_now) {
    Stream(model, in, out, exit_now).answer();
}

}  // namespace opwright::host

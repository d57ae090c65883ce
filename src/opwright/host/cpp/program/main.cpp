// The program opwright-host, which runs a bundle.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include "engine/activity.h"
#include "engine/atomic_file.h"
#include "engine/file.h"
#include "engine/reason.h"
#include "engine/saved_model.h"
#include "opwright/host.h"
#include "program/last_words.h"
#include "program/npy.h"
#include "program/npz.h"
#include "program/options.h"
#include "program/report.h"
#include "program/requests.h"
#include "program/runs.h"
#include "program/stream.h"
#include "program/streams.h"
#include "program/timed_run.h"
#include "program/unwritable.h"

namespace opwright::host {
namespace {

using Clock = std::chrono::steady_clock;

void write_lone_array(const std::string& path, const Answer& answer) {
    if (answer.outputs.size() != 1)
        throw Error(Code::output_unwritable, "the output " + path + " can hold only one array, but the model returns " +
                                                 std::to_string(answer.outputs.size()) + ": pass an .npz file");
    try {
        write_file_atomically(path, write_npy(answer.outputs[0]));
    } catch (const std::system_error& error) {
        throw_unwritable(path, error);
    }
}

void write_outputs(const std::string& path, const Answer& answer, const Model& model) {
    if (path.ends_with(".npy")) {
        write_lone_array(path, answer);
        return;
    }
    if (!path.ends_with(".npz")) throw Error(Code::usage, "the output " + path + " must end in .npz or .npy");
    std::vector<std::pair<std::string, at::Tensor>> arrays;
    for (size_t i = 0; i < answer.outputs.size(); ++i) arrays.emplace_back(model.outputs()[i].name, answer.outputs[i]);
    write_npz(path, arrays);
}

// Limits writable memory, including that of libraries and threads.
void limit_memory(uint64_t bytes) {
    struct rlimit limit = {};
    getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(bytes, limit.rlim_max);
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
        throw Error(Code::usage, "the memory cannot be limited to " + std::to_string(bytes) +
                                     " bytes: " + reason_of(last_error("setrlimit")));
}

// Skips destructors, which would wait for a run that may never finish.
void exit_now(const Error& error) {
    print_failure(error.what());
    end_is_expected();
    _exit(static_cast<int>(error.code()));
}

int run(const Options& options, Report& report, Clock::time_point began) {
    if (options.memory_limit) limit_memory(options.memory_limit);
    Descriptor requests_in;
    if (options.stream) {
        requests_in = take_standard_input();
        std::signal(SIGPIPE, SIG_IGN);  // a closed reader is an error of `write` instead
        run_torchscript_without_profile();
    }
    if (options.threads) at::set_num_threads(options.threads);
    // NNPACK reads it to detect the processor, and prints an error on every run if it cannot.
    if (access("/proc/cpuinfo", R_OK) != 0) at::globalContext().setUserEnabledNNPACK(false);
    const auto start = Clock::now();
    const Model model = [&options] {
        const ActivityScope scope("loaded", "the bundle");
        return Model::load(options.bundle, {options.runners});
    }();
    announce_early_end_first();
    const double load_seconds = seconds_since(start);
    if (options.stream) {
        report.ready(model, load_seconds);
        report.require_written();
        answer_stream(model, requests_in.number(), report.json_descriptor(), exit_now);
        return EXIT_SUCCESS;
    }
    if (options.verify) {
        const ActivityScope scope("computed", "the goldens");
        report.verified(model, model.verify());
        report.require_written();
        return EXIT_SUCCESS;
    }
    const std::vector<Request> requests = read_requests(options);
    const double before_runs = seconds_since(began);
    const Request* failed = nullptr;  // the first one in the list
    int code = EXIT_SUCCESS;          // of the first failure
    const Runs runs = run_all(model, requests, options, [&](const Request& request, Answer& answer) {
        if (!answer.error && !request.output.empty())
            answer.error = error_of(Code::output_unwritable, "the output " + request.output + " cannot be written: ",
                                    [&] { write_outputs(request.output, answer, model); });
        const auto report_it = [&] { report.answer(request, answer, model); };
        if (const auto unprintable = error_of(Code::internal, "the answer cannot be printed: ", report_it)) {
            answer.error = unprintable;
            report.answer(request, answer, model);
        }
        if (!answer.error || (failed && failed < &request)) return;
        failed = &request;
        code = static_cast<int>(answer.error->code());
    });
    const size_t asked =
        std::min(static_cast<size_t>(options.runners), requests.size() * static_cast<size_t>(options.repeat));
    if (runs.runners < asked)
        print_failure(std::to_string(runs.runners) + " of " + std::to_string(asked) +
                      " runners ran, because the system provided no more threads; pass a smaller --runners, or raise "
                      "the system's limit");
    report.figures(runs, load_seconds, before_runs + runs.first_result_seconds);
    report.require_written();
    return code;
}

}  // namespace
}  // namespace opwright::host

int main(int argc, char** argv) {
    const auto began = std::chrono::steady_clock::now();
    using namespace opwright;
    host::fill_standard_descriptors();
    std::signal(SIGXFSZ, SIG_IGN);  // exceeding the file size limit is an error of `write` instead
    int code = EXIT_SUCCESS;
    try {
        const std::optional<host::Options> options = host::parse_options(argc, argv);
        if (!options) return EXIT_SUCCESS;
        host::Report report(*options);
        // In a stream, the process may be in the middle of writing an answer.
        host::announce_early_end(options->stream ? -1 : report.json_descriptor());
        const auto run = [&] { code = host::run(*options, report, began); };
        if (const auto error = host::error_of(Code::internal, "", run)) {
            code = static_cast<int>(error->code());
            report.failed(*error);
        }
    } catch (...) {
        const Error error = host::current_error(Code::internal);
        code = static_cast<int>(error.code());
        host::print_failure(error.what());
    }
    host::end_is_expected();
    return code;
}

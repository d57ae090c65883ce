// The probe: runs one saved model, with its custom operators, in a process without Python.
//
// It reads a file of requests and writes a file of responses. A request that raises an error also gets a response. If
// the probe cannot run the requests, it prints one line to standard error and exits with an error code.
#include <ATen/core/ivalue.h>
#include <c10/core/GradMode.h>
#include <getopt.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/libraries.h"
#include "engine/reason.h"
#include "engine/saved_model.h"
#include "exchange.h"
#include "gradients.h"
#include "math_library.h"
#include "opwright/host/error.h"

const char* const opwright::host::program_name = "probe";

namespace opwright::probe {
namespace {

constexpr const char* usage = "usage: probe [--library FILE.so]... [--backward] MODEL.pt|MODEL.pt2 REQUESTS RESPONSES";

struct Options {
    std::vector<std::string> libraries;
    bool backward = false;
    std::string model, requests, responses;
};

Options parse(int argc, char** argv) {
    static const option known[] = {{"library", required_argument, nullptr, 'l'},
                                   {"backward", no_argument, nullptr, 'b'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {}};
    Options options;
    opterr = 0;  // getopt must not print: the probe reports the error in one line
    for (int letter; (letter = getopt_long(argc, argv, "h", known, nullptr)) != -1;) {
        if (letter == 'l') {
            options.libraries.emplace_back(optarg);
        } else if (letter == 'b') {
            options.backward = true;
        } else if (letter == 'h') {
            std::cout << usage << '\n';
            std::exit(EXIT_SUCCESS);
        } else {
            throw Error(Code::usage, "'" + std::string(argv[optind - 1]) + "' is unknown or lacks its value; " + usage);
        }
    }
    if (argc - optind != 3) throw Error(Code::usage, usage);
    options.model = argv[optind];
    options.requests = argv[optind + 1];
    options.responses = argv[optind + 2];
    return options;
}

std::unique_ptr<host::SavedModel> load_model(const std::string& path, bool backward) {
    host::require_file("model", path);
    if (std::filesystem::path(path).extension() != ".pt2") return host::load_torchscript(path);
    if (backward)
        throw Error(Code::usage, "model " + path +
                                     " is compiled and has no gradients: omit --backward, or save the model as "
                                     "TorchScript");
    return host::load_package(path);
}

// Waits for kernels on a GPU, so that their errors are reported and their time is measured.
void wait_for(const std::vector<c10::IValue>& outputs) {
    for (const c10::IValue& output : outputs)
        if (output.isTensor()) host::wait_for(output.toTensor().device());
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> times) {
    if (times.empty()) return 0;
    std::sort(times.begin(), times.end());
    return (times[times.size() / 2] + times[(times.size() - 1) / 2]) / 2;
}

Response answer(host::SavedModel& model, const Arguments& arguments, bool backward, std::vector<double>& times) {
    try {
        const auto start = std::chrono::steady_clock::now();
        Response response{flatten(model.run(arguments)), {}, ""};
        wait_for(response.outputs);
        times.push_back(seconds_since(start));
        if (backward) response.gradients = gradients(response.outputs, arguments);
        wait_for(response.gradients);
        for (std::vector<c10::IValue>* values : {&response.outputs, &response.gradients})
            std::transform(values->begin(), values->end(), values->begin(), encoded);
        return response;
    } catch (...) {
        return {{}, {}, host::current_exception_reason()};
    }
}

void run(const Options& options) {
    host::require_linked_libraries_registered();
    initialize_math_library();
    for (const std::string& path : options.libraries) host::open_library(path);
    const std::vector<Arguments> requests = read_requests(options.requests);
    const auto start = std::chrono::steady_clock::now();
    const std::unique_ptr<host::SavedModel> model = load_model(options.model, options.backward);
    const double load_seconds = seconds_since(start);
    c10::AutoGradMode with_gradients(options.backward);
    std::vector<double> times;
    std::vector<Response> responses;
    for (const Arguments& arguments : requests) {
        // Flushed, so that the output shows which request was running if this process crashes.
        std::cout << "request " << responses.size() << std::endl;
        responses.push_back(answer(*model, arguments, options.backward, times));
    }
    std::cout << "answered" << std::endl;
    write_responses(responses, options.responses);
    std::cout << "{\"python_mapped\": " << std::boolalpha << host::python_is_mapped()
              << ", \"load_seconds\": " << load_seconds << ", \"median_run_seconds\": " << median(times) << "}"
              << std::endl;
}

}  // namespace
}  // namespace opwright::probe

int main(int argc, char** argv) {
    try {
        opwright::probe::run(opwright::probe::parse(argc, argv));
        return EXIT_SUCCESS;
    } catch (const opwright::Error& error) {
        opwright::host::print_failure(error.what());
        return static_cast<int>(error.code());
    } catch (...) {
        opwright::host::print_failure(opwright::host::current_exception_reason());
        return static_cast<int>(opwright::Code::internal);
    }
}

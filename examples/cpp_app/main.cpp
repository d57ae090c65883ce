// Runs a saved TorchScript model, including custom operators, in a process without Python.
//
// One source, two programs: `run_linked` has operator libraries linked into it, and `run_opened` opens them at startup.
// Every failure is one line on stderr and a distinct exit code.

#include <dlfcn.h>
#include <fcntl.h>
#include <getopt.h>
#include <link.h>
#include <torch/script.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr std::string_view usage = "usage: MODEL.pt INPUTS.pt [--output OUT.pt] [--library LIBRARY.so]... [--repeat N]";

enum Exit {
    wrong_usage = 2,
    missing_file = 3,
    broken_model = 4,
    missing_operator = 5,
    broken_inputs = 6,
    inputs_do_not_fit = 7,
    library_does_not_load = 8,
    operators_refused = 9,
    run_failed = 10,
    output_not_written = 11,
};

struct Failure : std::runtime_error {
    Failure(Exit code, const std::string& message) : std::runtime_error(message), code(code) {}
    Exit code;
};

struct Options {
    std::string model;
    std::string inputs;
    std::string output;
    std::vector<std::string> libraries;
    int repeat = 0;
};

// The line of a PyTorch error that states what is wrong. A stack trace follows it; in an error from a running model,
// the TorchScript source with a mark at the location comes before it.
std::string reason(const std::exception& error) {
    const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
    std::string text = of_torch ? of_torch->what_without_backtrace() : error.what();
    constexpr std::string_view running = "The following operation failed in the TorchScript interpreter.";
    if (const auto place = text.rfind("<--- HERE\n"); text.starts_with(running) && place != std::string::npos) {
        auto line = text.find('\n', place);
        while (line != std::string::npos && text.find_first_of(" \n", line + 1) == line + 1)
            line = text.find('\n', line + 1);
        if (line != std::string::npos) text.erase(0, line);
    }
    text.erase(0, text.find_first_not_of('\n'));
    return text.substr(0, text.find('\n'));
}

Options parse(int argc, char** argv) {
    static const option known[] = {{"output", required_argument, nullptr, 'o'},
                                   {"library", required_argument, nullptr, 'l'},
                                   {"repeat", required_argument, nullptr, 'r'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {}};
    Options options;
    opterr = 0;  // this program prints the error itself
    for (int letter; (letter = getopt_long(argc, argv, "h", known, nullptr)) != -1;) {
        const std::string_view value = optarg ? optarg : "";
        if (letter == 'o') {
            options.output = value;
        } else if (letter == 'l') {
            options.libraries.emplace_back(value);
        } else if (letter == 'r') {
            const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.repeat);
            if (error != std::errc() || end != value.data() + value.size() || options.repeat < 1)
                throw Failure(wrong_usage,
                              "--repeat expects an integer of at least 1, not '" + std::string(value) + "'");
        } else if (letter == 'h') {
            std::cout << usage << '\n';
            std::exit(EXIT_SUCCESS);
        } else {
            throw Failure(wrong_usage, "'" + std::string(argv[optind - 1]) + "' is unknown or lacks its value; " +
                                           std::string(usage));
        }
    }
    if (argc - optind != 2) throw Failure(wrong_usage, std::string(usage));
    options.model = argv[optind];
    options.inputs = argv[optind + 1];
    return options;
}

void must_be_a_file(const std::string& what, const std::string& path) {
    if (!std::filesystem::exists(path)) throw Failure(missing_file, what + " " + path + " does not exist");
    if (std::filesystem::is_directory(path)) throw Failure(missing_file, what + " " + path + " is a folder");
}

// Why PyTorch rejected the operators of a library that was built with opwright; null if it did not.
void require_registered(void* library, const std::string& path) {
    using LoadError = const char*();
    auto* load_error = reinterpret_cast<LoadError*>(dlsym(library, "opwright_load_error"));
    const char* message = load_error ? load_error() : nullptr;
    if (message) throw Failure(operators_refused, "library " + path + " was refused: " + message);
}

// Linked libraries registered their operators before `main`.
void require_linked_libraries_registered() {
    std::vector<std::string> paths;
    dl_iterate_phdr(
        [](dl_phdr_info* object, size_t, void* found) {
            static_cast<std::vector<std::string>*>(found)->emplace_back(object->dlpi_name);
            return 0;
        },
        &paths);
    for (const std::string& path : paths) {
        if (path.empty()) continue;  // the program itself
        if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) require_registered(library, path);
    }
}

std::string library_being_opened;
int standard_error = -1;

// PyTorch and the library both print a rejection in their own ways; this program prints it once.
void hide_stderr() {
    standard_error = dup(STDERR_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
}

void show_stderr() {
    dup2(standard_error, STDERR_FILENO);
    close(standard_error);
}

// PyTorch's TORCH_LIBRARY throws if its namespace is taken. The exception passes through dlopen, after which the
// process cannot continue.
[[noreturn]] void refuse_library_being_opened() {
    show_stderr();
    std::string message = "it terminated this program";
    try {
        if (std::current_exception()) std::rethrow_exception(std::current_exception());
    } catch (const std::exception& error) {
        message = reason(error);
    } catch (...) {
    }
    std::cerr << program_invocation_short_name << ": library " << library_being_opened << " was refused: " << message
              << std::endl;
    std::_Exit(operators_refused);
}

void open_library(const std::string& path) {
    must_be_a_file("library", path);
    // The C library declares dlopen as noexcept, and compilers rely on it. Calling it through an opaque pointer lets
    // `catch` work; if the C library itself blocks the exception, C++ calls `terminate`.
    void* (*volatile open)(const char*, int) = dlopen;
    const auto terminate = std::set_terminate(refuse_library_being_opened);
    library_being_opened = path;
    hide_stderr();
    void* library = nullptr;
    try {
        // Absolute, because dlopen searches for a bare name in the system's library folders.
        library = open(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    } catch (...) {
        refuse_library_being_opened();
    }
    show_stderr();
    std::set_terminate(terminate);
    if (!library) throw Failure(library_does_not_load, "library " + path + " does not load: " + dlerror());
    require_registered(library, path);  // never closed: its operators are used until the end
}

torch::jit::Module load_model(const std::string& path) {
    must_be_a_file("model", path);
    try {
        torch::jit::Module model = torch::jit::load(path);
        model.eval();
        return model;
    } catch (const std::exception& error) {
        const std::string message = reason(error);
        constexpr std::string_view unknown = "Unknown builtin op: ";
        if (!message.starts_with(unknown)) throw Failure(broken_model, "model " + path + " cannot be read: " + message);
        std::string name = message.substr(unknown.size());
        name.erase(std::min(name.find_last_not_of('.') + 1, name.size()));
        throw Failure(missing_operator, "model " + path + " needs the operator " + name +
                                            ", which no library in this program provides: pass its library with "
                                            "--library, or link it (opwright_add_library in CMake)");
    }
}

std::vector<torch::IValue> load_inputs(const std::string& path) {
    must_be_a_file("inputs", path);
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes(std::filesystem::file_size(path));
    if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
        throw Failure(missing_file, "inputs " + path + " cannot be read");
    torch::IValue value;
    try {
        value = torch::jit::pickle_load(bytes);
    } catch (const std::exception& error) {
        throw Failure(broken_inputs, "inputs " + path + " cannot be read: " + reason(error));
    }
    if (value.isList()) return value.toListRef().vec();
    if (value.isTuple()) return value.toTupleRef().elements().vec();
    throw Failure(broken_inputs, "inputs " + path + " contain one " + value.tagKind() +
                                     "; expected a list with one entry per argument of the model, as in "
                                     "torch.save([x, y], path)");
}

void must_fit(const torch::jit::Module& model, std::vector<torch::IValue> inputs) {
    inputs.insert(inputs.begin(), model._ivalue());  // the schema counts `self`
    try {
        model.get_method("forward").function().getSchema().checkAndNormalizeInputs(inputs, {});
    } catch (const std::exception& error) {
        throw Failure(inputs_do_not_fit, "the inputs do not fit the model: " + reason(error));
    }
}

torch::IValue run(torch::jit::Module& model, const std::vector<torch::IValue>& inputs) {
    try {
        return model.forward(inputs);
    } catch (const std::exception& error) {
        throw Failure(run_failed, "the model failed on these inputs: " + reason(error));
    }
}

// In milliseconds, excluding the first runs, in which TorchScript specializes the model.
double median_time(torch::jit::Module& model, const std::vector<torch::IValue>& inputs, int repeat) {
    constexpr int warm_up = 3;
    std::vector<double> times;
    for (int i = -warm_up; i < repeat; ++i) {
        const auto start = std::chrono::steady_clock::now();
        run(model, inputs);
        const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
        if (i >= 0) times.push_back(time.count());
    }
    std::sort(times.begin(), times.end());
    return (times[times.size() / 2] + times[(times.size() - 1) / 2]) / 2;
}

// Lists become tuples: a list is saved with its element type, which torch.load(weights_only=True) rejects.
torch::IValue for_python(const torch::IValue& output) {
    if (output.isTensor()) return output;
    std::vector<torch::IValue> elements;
    if (output.isTuple())
        elements = output.toTupleRef().elements().vec();
    else if (output.isList())
        elements = output.toListRef().vec();
    else
        throw Failure(output_not_written, "the model returned one " + output.tagKind() +
                                              ", which cannot be written: return a tensor, or a tuple or "
                                              "list of tensors");
    std::transform(elements.begin(), elements.end(), elements.begin(), for_python);
    return c10::ivalue::Tuple::create(std::move(elements));
}

void save(const torch::IValue& output, const std::string& path) {
    const std::vector<char> bytes = torch::jit::pickle_save(for_python(output));
    const std::string part = path + ".part";  // renamed when complete, so that no partial file is visible
    std::ofstream file(part, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    std::error_code error;
    if (file) std::filesystem::rename(part, path, error);
    if (file && !error) return;
    std::filesystem::remove(part, error);
    throw Failure(output_not_written, "output " + path + " cannot be written");
}

void print(const torch::IValue& output) {
    if (output.isTensor())
        std::cout << output.toTensor().scalar_type() << ' ' << output.toTensor().sizes() << '\n';
    else if (output.isTuple())
        for (const torch::IValue& element : output.toTupleRef().elements()) print(element);
    else if (output.isList())
        for (const torch::IValue& element : output.toListRef()) print(element);
    else
        std::cout << output.tagKind() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const Options options = parse(argc, argv);
        require_linked_libraries_registered();
        for (const std::string& path : options.libraries) open_library(path);
        const torch::NoGradGuard no_grad;
        torch::jit::Module model = load_model(options.model);
        const std::vector<torch::IValue> inputs = load_inputs(options.inputs);
        must_fit(model, inputs);
        const torch::IValue output = run(model, inputs);
        print(output);
        if (!options.output.empty()) save(output, options.output);
        if (options.repeat > 0)
            std::cout << "{\"runs\": " << options.repeat
                      << ", \"median_ms\": " << median_time(model, inputs, options.repeat) << "}\n";
        return EXIT_SUCCESS;
    } catch (const Failure& failure) {
        std::cerr << program_invocation_short_name << ": " << failure.what() << '\n';
        return failure.code;
    } catch (const std::exception& error) {
        std::cerr << program_invocation_short_name << ": " << reason(error) << '\n';
        return EXIT_FAILURE;
    }
}

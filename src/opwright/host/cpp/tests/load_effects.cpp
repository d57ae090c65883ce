// Loads a bundle and prints what changed in the process, one line per property; prints nothing if nothing changed.
//
//     load_effects [--plant] BUNDLE      --plant also changes an environment variable
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "opwright/host.h"

namespace {

using Properties = std::map<std::string, std::string>;

template <typename... Parts>
std::string joined(const Parts&... parts) {
    std::ostringstream text;
    ((text << parts << ' '), ...);
    return text.str();
}

size_t entries(const char* folder) {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) count += entry.exists() ? 1 : 0;
    return count;
}

// Includes pointers: setting a variable to its current value also races with getenv.
std::string environment() {
    std::string all = joined(environ);
    for (char** variable = environ; *variable; ++variable)
        all += joined(static_cast<const void*>(*variable), *variable);
    return all;
}

std::string signal_handlers() {
    std::string all;
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction action = {};
        if (sigaction(number, nullptr, &action) == 0)
            all += joined(number, reinterpret_cast<const void*>(action.sa_handler), action.sa_flags);
    }
    return all;
}

// Rounding, trapping exceptions, and whether denormal numbers are flushed to zero. Flags that operations raise do not
// count as state.
std::string float_environment() {
#ifdef __SSE__
    return joined(_mm_getcsr() & ~_MM_EXCEPT_MASK);
#else
    return joined(fegetround());
#endif
}

mode_t file_mode_mask() {
    const mode_t mask = umask(0);
    umask(mask);
    return mask;
}

Properties properties() {
    struct stat standard_error = {};
    fstat(STDERR_FILENO, &standard_error);
    const at::Context& context = at::globalContext();
    return {
        {"environment", environment()},
        {"current folder", std::filesystem::current_path().string()},
        {"file descriptors", joined(entries("/proc/self/fd"))},
        {"standard error", joined(standard_error.st_dev, standard_error.st_ino)},
        {"std::terminate handler", joined(reinterpret_cast<const void*>(std::get_terminate()))},
        {"signal handlers", signal_handlers()},
        {"umask", joined(file_mode_mask())},
        {"locale", setlocale(LC_ALL, nullptr)},
        {"float environment", float_environment()},
        {"threads", joined(entries("/proc/self/task"))},
        {"threads of one run", joined(at::get_num_threads())},
        {"gradient mode", joined(c10::GradMode::is_enabled())},
        {"default dtype", joined(c10::get_default_dtype_as_scalartype())},
        {"deterministic algorithms", joined(context.deterministicAlgorithms())},
    };
}

}  // namespace

int main(int argc, char** argv) {
    const bool plant = argc == 3 && std::string(argv[1]) == "--plant";
    if (argc != 2 && !plant) {
        std::cerr << "usage: load_effects [--plant] BUNDLE" << std::endl;
        return 2;
    }
    const Properties before = properties();
    if (plant) setenv("OPWRIGHT_PLANTED", "1", 1);
    try {
        const auto model = opwright::Model::load(argv[argc - 1]);
        for (const auto& [name, value] : properties())
            if (value != before.at(name)) std::cout << name << ": " << before.at(name) << "-> " << value << std::endl;
    } catch (const opwright::Error& error) {
        std::cerr << error.what() << std::endl;
        return static_cast<int>(error.code());
    }
}

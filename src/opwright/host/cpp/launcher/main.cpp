// Starts a self-contained bundle: checks the files that it is about to execute, then executes the bundle's program.
//
// It depends only on the C library. Only `opwright verify` checks the launcher's own bytes.
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <vector>

#include "bundle/folder.h"
#include "bundle/processor.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

namespace fs = std::filesystem;

// The path under which the system executed this file. /proc may be missing.
fs::path own_folder() {
    const auto* name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    if (!name) throw Error(Code::internal, "the system does not report the path of this program");
    return fs::absolute(name).parent_path();
}

// Returns PyTorch's name for the fastest kernels that the processor supports.
const char* fastest_kernels() {
    const auto has_all = [](std::initializer_list<const char*> names) {
        return std::all_of(names.begin(), names.end(), [](const char* name) { return has_feature(name); });
    };
    if (has_all({"avx512vl", "avx512bw", "avx512dq", "fma"})) return "avx512";
    return has_all({"avx2", "fma"}) ? "avx2" : "default";
}

[[noreturn]] void become_the_program(int argc, char** argv) {
    const fs::path folder = own_folder();
    const Manifest manifest = read_manifest(folder);
    if (!manifest.host_program)
        throw Error(Code::manifest_invalid,
                    "the bundle " + folder.string() +
                        " is not self-contained: it has no host program; ship the model with --self-contained");
    check_processor(manifest);
    check_files(folder, manifest, Part::host);
    // Without /proc, PyTorch cannot detect the processor's features and selects its slowest kernels.
    if (access("/proc/cpuinfo", R_OK) != 0) setenv("ATEN_CPU_CAPABILITY", fastest_kernels(), 0);
    const fs::path program = folder / *manifest.host_program;
    // The program looks for its libraries next to itself, and the machine's libraries must not take precedence. Without
    // /proc, the system's loader must be given that folder.
    unsetenv("LD_LIBRARY_PATH");
    setenv("LD_ORIGIN_PATH", program.parent_path().c_str(), 1);
    std::string name = "opwright-host", bundle = folder.string();
    std::vector<char*> arguments{name.data(), bundle.data()};
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    arguments.push_back(nullptr);
    execv(program.c_str(), arguments.data());
    throw Error(Code::library_refused, "the program " + program.string() + " cannot be started: " + strerror(errno));
}

}  // namespace
}  // namespace opwright::host

int main(int argc, char** argv) {
    try {
        opwright::host::become_the_program(argc, argv);
    } catch (const opwright::Error& error) {
        std::cerr << "host: " << error.what() << std::endl;
        return static_cast<int>(error.code());
    } catch (const std::exception& error) {
        std::cerr << "host: " << error.what() << std::endl;
        return static_cast<int>(opwright::Code::internal);
    }
}

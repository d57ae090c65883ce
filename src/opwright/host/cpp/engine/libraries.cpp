#include "engine/libraries.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <vector>

#include "engine/reason.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

// Redirects standard error to memory. PyTorch and a library each report a failed registration in their own way, and the
// caller reports it once. If the library registers successfully, what it printed is shown afterwards.
class StderrCapture {
  public:
    StderrCapture()
        : standard_error_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)), captured_(memfd_create("stderr", MFD_CLOEXEC)) {
        // A process without standard error stays without it.
        if (standard_error_ >= 0 && captured_ >= 0) dup2(captured_, STDERR_FILENO);
    }
    ~StderrCapture() {
        restore();
        close(standard_error_);
        close(captured_);
    }
    StderrCapture(const StderrCapture&) = delete;
    StderrCapture& operator=(const StderrCapture&) = delete;

    void replay() const {
        char buffer[4096];
        lseek(captured_, 0, SEEK_SET);
        for (ssize_t size; (size = read(captured_, buffer, sizeof buffer)) > 0;)
            if (write(standard_error_, buffer, static_cast<size_t>(size)) != size) return;
    }

    // Also called before the process exits from within `dlopen`, where no destructor runs.
    void restore() const {
        if (standard_error_ >= 0) dup2(standard_error_, STDERR_FILENO);
    }

  private:
    int standard_error_;
    int captured_;
};

// The loader maps the segments listed in the header, and a process that touches memory beyond the end of the file is
// killed. A file that is not ELF is left to the loader, which rejects it.
void require_complete_elf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    ElfW(Ehdr) header = {};
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    const uint64_t size = std::filesystem::file_size(path);
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
        ElfW(Phdr) segment = {};
        file.seekg(static_cast<std::streamoff>(header.e_phoff + i * header.e_phentsize));
        if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment) || segment.p_offset > size ||
            segment.p_filesz > size - segment.p_offset)
            throw Error(Code::library_refused,
                        "library " + path + " does not load: it is shorter than its header says");
    }
}

// Why the library's operators were not registered, as a library built with opwright reports it; empty if they were.
std::string registration_error(void* library) {
    using LoadError = const char*();
    auto* load_error = reinterpret_cast<LoadError*>(dlsym(library, "opwright_load_error"));
    const char* message = load_error ? load_error() : nullptr;
    return message ? std::string(" was refused: ") + message : "";
}

// The paths of all shared objects in this process, as the loader reports them: /proc may be missing in a container.
std::vector<std::string> mapped_objects() {
    std::vector<std::string> paths;
    dl_iterate_phdr(
        [](dl_phdr_info* object, size_t, void* found) {
            static_cast<std::vector<std::string>*>(found)->emplace_back(object->dlpi_name);
            return 0;
        },
        &paths);
    return paths;
}

// The library that is being opened, for a `terminate` handler, which has no arguments.
const StderrCapture* open_capture = nullptr;
std::string open_path;

// PyTorch's TORCH_LIBRARY throws if its namespace is taken. The exception leaves `dlopen` midway, and the process
// cannot continue from there.
[[noreturn]] void exit_from_open() {
    open_capture->restore();
    const std::string why = std::current_exception() ? current_exception_reason() : "it called std::terminate";
    print_failure("library " + open_path + " was refused: " + why);
    std::_Exit(static_cast<int>(Code::library_refused));
}

// Opens the library. Returns why it cannot be used, or an empty string. An uncaught exception would terminate the
// process before standard error is restored.
std::string open_captured(const std::string& path) {
    // The C library declares that dlopen does not throw, and compilers rely on it. Calling it through an opaque pointer
    // lets `catch` work; if the C library itself blocks exceptions, C++ calls `terminate`.
    void* (*volatile open)(const char*, int) = dlopen;
    const StderrCapture capture;
    open_capture = &capture;
    open_path = path;
    const auto terminate = std::set_terminate(exit_from_open);
    void* library = nullptr;
    try {
        // An absolute path, because dlopen searches the system's libraries for a bare name. RTLD_GLOBAL, as for a
        // linked library: the next library may use this one's symbols.
        library = open(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_GLOBAL);
    } catch (...) {
        exit_from_open();
    }
    std::set_terminate(terminate);
    open_capture = nullptr;
    std::string failure = library ? registration_error(library) : std::string(" does not load: ") + dlerror();
    if (failure.empty()) capture.replay();
    return failure;
}

// Rejects tokens that `dlopen` replaces in a path.
void require_no_tokens(const std::string& path) {
    const std::string whole = std::filesystem::absolute(path).string();
    for (const char* token : {"ORIGIN", "LIB", "PLATFORM"})
        for (const std::string& form : {std::string("$") + token, std::string("${") + token + "}"})
            if (whole.find(form) != std::string::npos)
                throw Error(Code::library_refused, "library " + path + " does not load: its path contains " + form +
                                                       ", which the system's loader replaces; move it");
}

}  // namespace

const char* library_being_opened() {
    return open_capture ? open_path.c_str() : nullptr;
}

void show_standard_error() {
    if (open_capture) open_capture->restore();
}

void open_library(const std::string& path) {
    require_file("library", path);
    require_no_tokens(path);
    require_complete_elf(path);
    const std::string failure = open_captured(path);
    if (!failure.empty()) throw Error(Code::library_refused, "library " + path + failure);
}

void require_linked_libraries_registered() {
    for (const std::string& path : mapped_objects()) {
        if (path.empty()) continue;  // the program itself
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
        const std::string failure = library ? registration_error(library) : "";
        if (!failure.empty()) throw Error(Code::library_refused, "library " + path + failure);
    }
}

bool python_is_mapped() {
    for (const std::string& path : mapped_objects()) {
        const std::string name = path.substr(path.rfind('/') + 1);
        if (name.starts_with("libpython") || name.starts_with("libtorch_python")) return true;
    }
    return false;
}

}  // namespace opwright::host

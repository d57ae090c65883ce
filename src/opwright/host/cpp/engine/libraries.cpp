#include "engine/libraries.h"

#include <dlfcn.h>
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

// Keeps back what is printed on standard error. PyTorch and a library each report a refusal in their own way, where
// this program says it once; what a library that is fine has to say is shown afterwards.
class Hush {
  public:
    Hush() : standard_error_(dup(STDERR_FILENO)), kept_(memfd_create("stderr", MFD_CLOEXEC)) {
        if (kept_ >= 0) dup2(kept_, STDERR_FILENO);
    }
    ~Hush() {
        dup2(standard_error_, STDERR_FILENO);
        close(standard_error_);
        close(kept_);
    }
    Hush(const Hush&) = delete;
    Hush& operator=(const Hush&) = delete;

    void show() const {
        char buffer[4096];
        lseek(kept_, 0, SEEK_SET);
        for (ssize_t size; (size = read(kept_, buffer, sizeof buffer)) > 0;)
            if (write(standard_error_, buffer, static_cast<size_t>(size)) != size) return;
    }

    // For a process that cannot go on.
    void lift() const { dup2(standard_error_, STDERR_FILENO); }

  private:
    int standard_error_;
    int kept_;
};

// The loader maps what the header says, and a process that touches what lies beyond the end of the file is over. What
// is no library at all, the loader itself refuses.
void must_be_whole(const std::string& path) {
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
                        "library " + path + " does not load: it ends before what its header says");
    }
}

// A library built with opwright says here why PyTorch did not take its operators: empty when it did.
std::string refusal_of(void* library) {
    using LoadError = const char*();
    auto* load_error = reinterpret_cast<LoadError*>(dlsym(library, "opwright_load_error"));
    const char* message = load_error ? load_error() : nullptr;
    return message ? std::string(" was refused: ") + message : "";
}

// The paths of all shared objects in this process, asked of the loader: /proc need not be there.
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

const Hush* hush_of_opening = nullptr;
std::string library_being_opened;

// PyTorch's own TORCH_LIBRARY throws where it finds its namespace taken. The exception comes out of dlopen, half way
// through which there is nothing to go on with.
[[noreturn]] void refuse_library_being_opened() {
    hush_of_opening->lift();
    const std::string why = std::current_exception() ? reason_of_current() : "it ended this program";
    print_failure("library " + library_being_opened + " was refused: " + why);
    std::_Exit(static_cast<int>(Code::library_refused));
}

// Why the library cannot be used; empty where it can. An exception that nobody caught would end the process before
// standard error is there again.
std::string refusal_of_opening(const std::string& path) {
    // The C library declares dlopen as a function that throws nothing, and compilers rely on it. Through a pointer that
    // they cannot follow, `catch` works; where the C library itself lets no exception pass, C++ calls `terminate`.
    void* (*volatile open)(const char*, int) = dlopen;
    const Hush hush;
    hush_of_opening = &hush;
    library_being_opened = path;
    const auto terminate = std::set_terminate(refuse_library_being_opened);
    void* library = nullptr;
    try {
        // Absolute, because dlopen looks up a bare name among the libraries of the system. Global, as a library is that
        // was linked: what one library defines, the next one may use.
        library = open(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_GLOBAL);
    } catch (...) {
        refuse_library_being_opened();
    }
    std::set_terminate(terminate);
    std::string refusal = library ? refusal_of(library) : std::string(" does not load: ") + dlerror();
    if (refusal.empty()) hush.show();
    return refusal;
}

}  // namespace

void open_library(const std::string& path) {
    must_be_a_file("library", path);
    must_be_whole(path);
    const std::string refusal = refusal_of_opening(path);
    if (!refusal.empty()) throw Error(Code::library_refused, "library " + path + refusal);
}

void linked_libraries_must_have_registered() {
    for (const std::string& path : mapped_objects()) {
        if (path.empty()) continue;  // the program itself
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
        const std::string refusal = library ? refusal_of(library) : "";
        if (!refusal.empty()) throw Error(Code::library_refused, "library " + path + refusal);
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

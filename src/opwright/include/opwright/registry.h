// What one shared object registers with torch, all at once when it is loaded, and takes back when it is unloaded.
//
// The blocks of OPWRIGHT_LIBRARY and OPWRIGHT_IMPL are collected first, over all sources of the shared object, then
// compared with each other, then registered, a namespace at a time: as a whole, or not at all. Nothing here throws:
// an exception out of a static initialiser would end the process inside dlopen.
#pragma once

#include <opwright/schema.h>
#include <opwright/types.h>
#include <opwright/verify.h>
#include <torch/csrc/stable/c/shim.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
// torch 2.13 says what went wrong; an older torch does not have this, and only prints it.
__attribute__((weak)) const char* torch_exception_get_what_without_backtrace();
}

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

using BoxedKernel = void (*)(StableIValue*, std::uint64_t, std::uint64_t);

struct Place {
    const char* file;
    int line;

    std::string text() const { return std::string(file) + ":" + std::to_string(line); }
};

struct Definition {
    std::string schema;
    Place place;
};

struct Implementation {
    std::string name;
    std::string key;
    BoxedKernel call;
    Signature signature;
    Place place;
};

// Everything that one shared object has to say about one namespace.
struct Namespace {
    std::string name;
    std::vector<Place> libraries;
    std::vector<Definition> definitions;
    std::vector<Implementation> implementations;
};

// One OPWRIGHT_LIBRARY or OPWRIGHT_IMPL in a source.
struct Block {
    const char* ns;
    const char* key;  // null for a library
    void (*body)(Namespace& into, const Block& block);
    Place place;
    Block* next = nullptr;
};

inline Block* blocks = nullptr;

// The schema of a kernel that has none: "name(Tensor arg0, int arg1) -> Tensor".
inline std::string infer_schema(std::string_view name, const Signature& kernel) {
    const auto type = [](const Type& of) {
        return std::string(of.written ? "Tensor(a!)" : schema_name(of));
    };
    std::string schema(name);
    schema += "(";
    for (std::size_t i = 0; i < kernel.parameter_count; ++i) {
        if (i > 0) schema += ", ";
        schema += type(kernel.parameters[i]) + " arg" + std::to_string(i);
    }
    schema += ") -> ";
    if (kernel.result_count == 1) return schema + type(kernel.results[0]);
    schema += "(";
    for (std::size_t i = 0; i < kernel.result_count; ++i) {
        if (i > 0) schema += ", ";
        schema += type(kernel.results[i]);
    }
    return schema + ")";
}

// "" when they fit.
inline std::string explain(const Difference& difference, const Signature& kernel) {
    using Kind = Difference::Kind;
    const std::string index = std::to_string(difference.index);
    const std::string count = std::to_string(difference.count);
    const Type says = difference.says.type;
    switch (difference.kind) {
        case Kind::None:
            return "";
        case Kind::Malformed:
            return "the schema is malformed";
        case Kind::ParameterCount:
            return "the schema has " + count + " parameters, the kernel " + std::to_string(kernel.parameter_count);
        case Kind::ResultCount:
            return "the schema has " + count + " results, the kernel " + std::to_string(kernel.result_count);
        case Kind::Parameter:
            return "parameter " + index + " ('" + std::string(difference.says.name) + "'): the schema says " +
                   schema_name(says) + ", the kernel takes " + kernel_name(kernel.parameters[difference.index]) +
                   ": use " + kernel_name(says);
        case Kind::Written:
            return "parameter " + index + " ('" + std::string(difference.says.name) +
                   "'): the kernel takes Tensor&, but the schema does not say that it is written: use const Tensor&, "
                   "or Tensor(a!) in the schema";
        case Kind::Result:
            return "result " + index + ": the schema says " + schema_name(says) + ", the kernel returns " +
                   kernel_name(kernel.results[difference.index]) + ": use " + kernel_name(says);
    }
    return "";
}

// What torch said last, its first line, or "".
inline std::string torch_said() {
    if (torch_exception_get_what_without_backtrace == nullptr) return "";
    const char* what = torch_exception_get_what_without_backtrace();
    const std::string_view said = what == nullptr ? "" : what;
    return std::string(said.substr(0, said.find('\n')));
}

// Where torch says that a namespace was registered before: " by /path/ops.cpp:12", or "".
inline std::string registered_before() {
    const std::string said = torch_said();
    constexpr std::string_view before = "was registered at ";
    const std::size_t at = said.find(before);
    if (at == std::string::npos) return "";
    const std::size_t start = at + before.size();
    return " by " + said.substr(start, said.find(';', start) - start);
}

// Namespaces as they are registered; the handles are what keeps them so.
class Registry {
  public:
    Registry() = default;
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;
    ~Registry() { release(0); }

    const char* error() const { return error_.empty() ? nullptr : error_.c_str(); }

    // Registers every block that waits; called once, after the last source was collected.
    void flush() noexcept {
        if (blocks == nullptr) return;
        try {
            for (const Namespace& ns : collect()) add(ns);
            if (!error_.empty()) std::fprintf(stderr, "opwright: %s\n", error_.c_str());
        } catch (const std::exception& problem) {  // no memory: nothing can be promised but that the process goes on
            release(0);
            std::fprintf(stderr, "opwright: nothing was registered: %s\n", problem.what());
        }
    }

  private:
    static std::vector<Namespace> collect() {
        std::vector<Namespace> found;
        for (; blocks != nullptr; blocks = blocks->next) {
            Namespace* into = nullptr;
            for (Namespace& ns : found) {
                if (ns.name == blocks->ns) into = &ns;
            }
            if (into == nullptr) into = &found.emplace_back(Namespace{blocks->ns, {}, {}, {}});
            if (blocks->key == nullptr) into->libraries.push_back(blocks->place);
            blocks->body(*into, *blocks);
        }
        return found;
    }

    void add(const Namespace& ns) {
        const std::size_t before = handles_.size();
        std::string problem = compare_all(ns);
        if (problem.empty()) problem = define(ns);
        if (problem.empty()) problem = implement(ns);
        if (problem.empty()) return;
        release(before);
        if (!error_.empty()) error_ += "; ";
        error_ += problem + "; nothing of this shared object is registered in '" + ns.name + "'";
    }

    // What can be wrong before torch is asked: two libraries, a kernel without a definition or unlike it.
    static std::string compare_all(const Namespace& ns) {
        if (ns.libraries.size() > 1) {
            return "the namespace '" + ns.name + "' is defined twice in one shared object, at " +
                   ns.libraries[0].text() + " and " + ns.libraries[1].text() +
                   ": keep one OPWRIGHT_LIBRARY, and use OPWRIGHT_IMPL elsewhere";
        }
        for (const Implementation& kernel : ns.implementations) {
            const std::string at = ns.name + "::" + kernel.name + " (" + kernel.place.text() + "): ";
            bool defined = ns.libraries.empty();  // else another library defines it, and torch looks for it
            for (const Definition& definition : ns.definitions) {
                const Schema schema = read_schema(definition.schema);
                if (schema.name != kernel.name) continue;
                defined = true;
                const std::string unlike = explain(compare(schema, kernel.signature), kernel.signature);
                if (!unlike.empty()) {
                    return at + "the kernel for " + kernel.key + " does not fit \"" + definition.schema + "\" (" +
                           definition.place.text() + "): " + unlike;
                }
            }
            if (!defined) return at + "there is a kernel for " + kernel.key + ", but no definition: add m.def";
        }
        return "";
    }

    std::string define(const Namespace& ns) {
        if (ns.libraries.empty()) return "";
        const Place& place = ns.libraries[0];
        TorchLibraryHandle library = nullptr;
        if (aoti_torch_library_init_def(ns.name.c_str(), place.file, place.line, &library) != TORCH_SUCCESS) {
            return "the namespace '" + ns.name + "' (" + place.text() + ") is taken: it was registered already" +
                   registered_before() + ": give one of the two another name, or load only one of them";
        }
        handles_.push_back(library);
        for (const Definition& definition : ns.definitions) {
            if (aoti_torch_library_def(library, definition.schema.c_str()) != TORCH_SUCCESS) {
                return "torch refuses \"" + definition.schema + "\" (" + definition.place.text() + "): " + torch_said();
            }
        }
        return "";
    }

    std::string implement(const Namespace& ns) {
        for (const Implementation& kernel : ns.implementations) {
            TorchLibraryHandle library = nullptr;
            const bool refused =
                aoti_torch_library_init_impl(ns.name.c_str(), kernel.key.c_str(), kernel.place.file,
                                             kernel.place.line, &library) != TORCH_SUCCESS ||
                (handles_.push_back(library),
                 torch_library_impl(library, kernel.name.c_str(), kernel.call, TORCH_ABI_VERSION) != TORCH_SUCCESS);
            if (refused) {
                return "torch refuses the kernel of " + ns.name + "::" + kernel.name + " for " + kernel.key + " (" +
                       kernel.place.text() + "): " + torch_said();
            }
        }
        return "";
    }

    // Takes back what was registered last, down to `count` handles.
    void release(std::size_t count) noexcept {
        for (; handles_.size() > count; handles_.pop_back()) aoti_torch_delete_library_object(handles_.back());
    }

    std::vector<TorchLibraryHandle> handles_;
    std::string error_;
};

inline Registry& registry() {
    static Registry of_this_shared_object;
    return of_this_shared_object;
}

// The blocks are collected by constructors of a higher priority, those of all sources before the first of these.
__attribute__((constructor)) static void flush_registry() { registry().flush(); }

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

// Null when everything was registered, else one line that says what was not, and why.
extern "C" __attribute__((weak, visibility("default"))) const char* opwright_load_error() {
    return opwright::detail::registry().error();
}

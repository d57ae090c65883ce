// Registers with torch everything that one shared object defines when it is loaded, and unregisters it when it is
// unloaded.
//
// The blocks of OPWRIGHT_LIBRARY and OPWRIGHT_IMPL are first collected from all sources of the shared object, then
// compared with each other, then registered, a namespace at a time: completely, or not at all. Nothing here throws:
// an exception from a static initialiser would end the process inside dlopen.
#pragma once

#include <opwright/compare.h>
#include <opwright/schema.h>
#include <opwright/torch_error.h>
#include <opwright/types.h>
#include <torch/csrc/stable/c/shim.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

using BoxedKernel = void (*)(StableIValue*, std::uint64_t, std::uint64_t);

// Joins parts into one string. Not inlined, because every source that registers an operator contains this code.
[[gnu::cold, gnu::noinline]] inline std::string joined(std::initializer_list<std::string_view> parts) {
    std::string all;
    for (const std::string_view part : parts) all += part;
    return all;
}

struct SourceLocation {
    const char* file;
    const char* line;
};

struct Definition {
    std::string schema;
    SourceLocation location;
};

struct Implementation {
    std::string_view name;
    const char* key;
    BoxedKernel call;
    const Signature* signature;
    SourceLocation location;
};

// Everything that one shared object defines or implements in one namespace.
struct Namespace {
    const char* name;
    std::vector<SourceLocation> libraries;
    std::vector<Definition> definitions;
    std::vector<Implementation> implementations;
};

// One OPWRIGHT_LIBRARY or OPWRIGHT_IMPL in a source.
struct Block {
    const char* ns;
    const char* key;  // null for a library
    void (*body)(Namespace& into, const Block& block);
    SourceLocation location;
    Block* next = nullptr;
};

inline Block* blocks = nullptr;

// The schema of a kernel that is registered without one: "name(Tensor arg0, int arg1) -> Tensor".
[[gnu::cold, gnu::noinline]] inline std::string infer_schema(std::string_view name, const Signature& kernel) {
    const auto type = [](const Type& of) { return of.mutated ? "Tensor(a!)" : schema_name(of); };
    std::string schema(name);
    for (std::size_t i = 0; i < kernel.parameter_count; ++i) {
        schema += joined({i == 0 ? "(" : ", ", type(kernel.parameters[i]), " arg", std::to_string(i)});
    }
    schema += kernel.parameter_count == 0 ? "() -> (" : ") -> (";
    for (std::size_t i = 0; i < kernel.result_count; ++i) {
        schema += joined({i == 0 ? "" : ", ", type(kernel.results[i])});
    }
    return schema + ")";
}

// Describes a difference that was not known at compile time.
[[gnu::cold, gnu::noinline]] inline std::string explain(const Difference& difference, const Signature& kernel) {
    using Kind = Difference::Kind;
    const std::string index = std::to_string(difference.index);
    const std::string count = std::to_string(difference.count);
    const std::string_view says = schema_name(difference.says.type);
    const std::string_view use = kernel_name(difference.says.type);
    switch (difference.kind) {
        case Kind::Malformed:
            return "the schema is malformed";
        case Kind::ParameterCount:
            return joined(
                {"the schema has ", count, " parameters, the kernel ", std::to_string(kernel.parameter_count)});
        case Kind::ResultCount:
            return joined({"the schema has ", count, " results, the kernel ", std::to_string(kernel.result_count)});
        case Kind::Parameter:
            return joined({"parameter ", index, " ('", difference.says.name, "'): the schema says ", says,
                           ", the kernel takes ", kernel_name(kernel.parameters[difference.index]), ": use ", use});
        case Kind::Mutated:
            return joined({"parameter ", index, " ('", difference.says.name,
                           "'): the kernel takes Tensor&, but the schema does not mark it as mutated: use const "
                           "Tensor&, or Tensor(a!) in the schema"});
        case Kind::Result:
            return joined({"result ", index, ": the schema says ", says, ", the kernel returns ",
                           kernel_name(kernel.results[difference.index]), ": use ", use});
        default:
            return "";
    }
}

// Where a namespace was registered before, according to torch: " by /path/ops.cpp:12", or "".
[[gnu::cold, gnu::noinline]] inline std::string previous_registration() {
    const std::string_view message = last_torch_error();
    constexpr std::string_view before = "was registered at ";
    const std::size_t at = message.find(before);
    if (at == std::string_view::npos) return "";
    const std::string_view place = message.substr(at + before.size());
    return joined({" by ", place.substr(0, place.find(';'))});
}

// The registered namespaces; their handles keep them registered.
class Registry {
  public:
    Registry() = default;
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;
    ~Registry() { release(0); }

    const char* error() const { return error_.empty() ? nullptr : error_.c_str(); }

    // Registers all collected blocks; called once, after the last source was collected.
    [[gnu::cold]] void flush() noexcept {
        try {
            for (const Namespace& ns : collect()) add(ns);
        } catch (const std::exception& problem) {  // no memory, or a block's own code: the process continues without it
            release(0);
            error_ = problem.what();
        }
        if (!error_.empty()) std::fprintf(stderr, "opwright: %s\n", error_.c_str());
    }

  private:
    [[gnu::cold]] static std::vector<Namespace> collect() {
        std::vector<Namespace> found;
        while (blocks != nullptr) {
            const Block& block = *blocks;
            blocks = block.next;
            Namespace* into = nullptr;
            for (Namespace& ns : found) {
                if (std::string_view(ns.name) == block.ns) into = &ns;
            }
            if (into == nullptr) into = &found.emplace_back(Namespace{block.ns, {}, {}, {}});
            if (block.key == nullptr) into->libraries.push_back(block.location);
            block.body(*into, block);
        }
        return found;
    }

    [[gnu::cold]] void add(const Namespace& ns) {
        const std::size_t before = handles_.size();
        std::string problem = compare_all(ns);
        if (problem.empty()) problem = define(ns);
        if (problem.empty()) problem = implement(ns);
        if (problem.empty()) return;
        release(before);
        error_ += joined(
            {error_.empty() ? "" : "; ", problem, "; nothing of this shared object is registered in '", ns.name, "'"});
    }

    // The faults that are found before registration: two libraries, a kernel without a definition or unlike it.
    [[gnu::cold]] static std::string compare_all(const Namespace& ns) {
        if (ns.libraries.size() > 1) {
            const SourceLocation& one = ns.libraries[0];
            const SourceLocation& two = ns.libraries[1];
            return joined({"the namespace '", ns.name, "' is defined twice in one shared object, at ", one.file, ":",
                           one.line, " and ", two.file, ":", two.line,
                           ": keep one OPWRIGHT_LIBRARY, and use OPWRIGHT_IMPL elsewhere"});
        }
        for (const Implementation& kernel : ns.implementations) {
            bool defined = ns.libraries.empty();  // then another library defines it, and torch looks for it
            for (const Definition& definition : ns.definitions) {
                const Schema schema = read_schema(definition.schema);
                if (schema.name != kernel.name) continue;
                defined = true;
                const Difference difference = compare(schema, *kernel.signature);
                if (difference.kind == Difference::Kind::None) continue;
                return joined({about(ns, kernel), " does not fit \"", definition.schema, "\" (",
                               definition.location.file, ":", definition.location.line,
                               "): ", explain(difference, *kernel.signature)});
            }
            if (!defined) return joined({about(ns, kernel), " has no definition: add m.def, or fix its name"});
        }
        return "";
    }

    [[gnu::cold]] std::string define(const Namespace& ns) {
        if (ns.libraries.empty()) return "";
        const SourceLocation& location = ns.libraries[0];
        TorchLibraryHandle library = nullptr;
        if (aoti_torch_library_init_def(ns.name, location.file, number(location), &library) != TORCH_SUCCESS) {
            return joined({"the namespace '", ns.name, "' (", location.file, ":", location.line,
                           ") is taken: it was registered already", previous_registration(),
                           ": give one of the two another name, or load only one of them"});
        }
        handles_.push_back(library);
        for (const Definition& definition : ns.definitions) {
            if (aoti_torch_library_def(library, definition.schema.c_str()) == TORCH_SUCCESS) continue;
            return joined({"torch rejects \"", definition.schema, "\" (", definition.location.file, ":",
                           definition.location.line, "): ", last_torch_error()});
        }
        return "";
    }

    [[gnu::cold]] std::string implement(const Namespace& ns) {
        for (const Implementation& kernel : ns.implementations) {
            TorchLibraryHandle library = nullptr;
            const bool made = aoti_torch_library_init_impl(ns.name, kernel.key, kernel.location.file,
                                                           number(kernel.location), &library) == TORCH_SUCCESS;
            if (made) handles_.push_back(library);
            const std::string name(kernel.name);
            if (made && torch_library_impl(library, name.c_str(), kernel.call, TORCH_ABI_VERSION) == TORCH_SUCCESS) {
                continue;
            }
            return joined({about(ns, kernel), " is rejected by torch: ", last_torch_error()});
        }
        return "";
    }

    [[gnu::cold, gnu::noinline]] static std::string about(const Namespace& ns, const Implementation& kernel) {
        return joined({"the kernel of ", ns.name, "::", kernel.name, " for ", kernel.key, " (", kernel.location.file,
                       ":", kernel.location.line, ")"});
    }

    static std::uint32_t number(const SourceLocation& location) {
        return static_cast<std::uint32_t>(std::strtoul(location.line, nullptr, 10));
    }

    // Unregisters what was registered last, down to `count` handles.
    [[gnu::cold]] void release(std::size_t count) noexcept {
        for (; handles_.size() > count; handles_.pop_back()) aoti_torch_delete_library_object(handles_.back());
    }

    std::vector<TorchLibraryHandle> handles_;
    std::string error_;
};

inline Registry& registry() {
    static Registry of_this_shared_object;
    return of_this_shared_object;
}

// Blocks are collected by constructors of a higher priority: those of every source run before the first of these.
__attribute__((constructor)) static void flush_registry() {
    if (blocks != nullptr) registry().flush();
}

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

// Returns null if everything was registered, else one line that names what was not, and why.
extern "C" __attribute__((weak, visibility("default"))) const char* opwright_load_error() {
    return opwright::detail::registry().error();
}

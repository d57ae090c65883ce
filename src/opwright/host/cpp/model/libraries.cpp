#include "model/libraries.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <map>
#include <optional>
#include <string>

#include "engine/libraries.h"
#include "engine/plain_number.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

// The digests of the libraries opened here, by namespace. Guarded by the lock under which bundles are loaded.
std::map<std::string, std::string>& opened() {
    static std::map<std::string, std::string> digests;
    return digests;
}

bool is_open(const Manifest& manifest, const Manifest::Library& library, const std::string& name) {
    const auto found = opened().find(name);
    return found != opened().end() && found->second == manifest.files.at(library.file).sha256;
}

bool is_open(const Manifest& manifest, const Manifest::Library& library) {
    for (const std::string& name : library.namespaces)
        if (!is_open(manifest, library, name)) return false;
    return !library.namespaces.empty();
}

// "ns::name.overload(Tensor x) -> Tensor" -> "ns::name" and "overload".
c10::OperatorName name_in(const std::string& schema) {
    const std::string whole = schema.substr(0, schema.find('('));
    const auto dot = whole.find('.', whole.find("::"));
    return dot == std::string::npos ? c10::OperatorName(whole, "")
                                    : c10::OperatorName(whole.substr(0, dot), whole.substr(dot + 1));
}

void check_operator(const Manifest::Operator& recorded, const std::string& library, c10::DispatchKey key) {
    const c10::OperatorName name = name_in(recorded.schema);
    const auto found = c10::Dispatcher::singleton().findSchema(name);
    if (!found)
        throw Error(Code::operator_missing, "the library " + library + " has no operator " + c10::toString(name) +
                                                "; the bundle was made with " + recorded.schema);
    PlainStream schema;
    schema << found->schema();
    if (schema.str() != recorded.schema)
        throw Error(Code::schema_changed, "the library " + library + " has " + schema.str() +
                                              "; the bundle was made with " + recorded.schema +
                                              ": ship the model again with this library");
    if (recorded.called && !found->hasComputedKernelForDispatchKey(key))
        throw Error(Code::kernel_missing, "the library " + library + " has no kernel for " + c10::toString(name) +
                                              " on the device " + c10::toString(key) +
                                              ": implement it there, or ship the model for a device that has one");
}

}  // namespace

void require_free_namespaces(const Manifest& manifest) {
    std::map<std::string, std::string> files;
    // One operator of each namespace in this process.
    std::map<std::string, std::string> known;
    for (const c10::OperatorName& one : c10::Dispatcher::singleton().getAllOpNames())
        known.emplace(one.name.substr(0, one.name.find("::")), c10::toString(one));
    for (const Manifest::Library& library : manifest.libraries) {
        for (const std::string& name : library.namespaces) {
            if (const auto [other, is_new] = files.emplace(name, library.file); !is_new)
                throw Error(Code::namespace_taken, "the namespace " + name + " of " + library.file +
                                                       " is taken: " + other->second +
                                                       " of this bundle also defines it. Leave out one of them");
            if (is_open(manifest, library, name)) continue;
            if (const auto found = known.find(name); found != known.end())
                throw Error(Code::namespace_taken, "the namespace " + name + " of " + library.file +
                                                       " is taken: this process has " + found->second +
                                                       " from another library. Run the bundle in a separate process");
        }
    }
}

void open_libraries(const std::filesystem::path& folder, const Manifest& manifest) {
    for (const Manifest::Library& library : manifest.libraries) {
        if (is_open(manifest, library)) continue;
        open_library((folder / library.file).string());
        for (const std::string& name : library.namespaces) opened()[name] = manifest.files.at(library.file).sha256;
    }
}

void check_operators(const Manifest& manifest) {
    const auto key = manifest.device == "cuda" ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
    for (const Manifest::Library& library : manifest.libraries)
        for (const Manifest::Operator& one : library.operators) check_operator(one, library.file, key);
}

}  // namespace opwright::host

// Manifests.
#include "bundle/manifest.h"

#include <array>
#include <vector>

#include "tests/fuzz/json.h"
#include "tests/fuzz/target.h"

namespace opwright::fuzz {
namespace {

constexpr std::array<std::string_view, 42> manifest_words{"../model.pt",
                                                          "/etc/passwd",
                                                          "lib/../../x",
                                                          "lib//x",
                                                          ".",
                                                          "..",
                                                          "a\\b",
                                                          "C:/x",
                                                          "a b",
                                                          "lib/x\n",
                                                          "",
                                                          " ",
                                                          "manifest.json",
                                                          "model.pt/",
                                                          "\xc3\xa9",
                                                          "\xc2\x9b",
                                                          "\xed\xa0\x80",
                                                          "2",
                                                          "2.",
                                                          ".13",
                                                          "2.13.1",
                                                          "99999.1",
                                                          "1e1",
                                                          "-1.2",
                                                          "9.0+PTX",
                                                          "+PTX",
                                                          "cuda",
                                                          "cpu",
                                                          "aoti",
                                                          "torchscript",
                                                          "host/bin/x",
                                                          "model.pt",
                                                          "min",
                                                          "max",
                                                          "image",
                                                          "dims",
                                                          "input",
                                                          "dim",
                                                          "newest",
                                                          "operators",
                                                          "null",
                                                          "bytes"};

bool leads_out(const std::string& path) {
    return path.empty() || path.front() == '/' || ("/" + path + "/").find("/../") != std::string::npos;
}

// Checks the invariants that the rest of the host relies on.
void require_consistent(const host::Manifest& manifest) {
    std::vector<std::string> named = manifest.goldens;
    named.push_back(manifest.model_file);
    for (const host::Manifest::Library& library : manifest.libraries) named.push_back(library.file);
    if (manifest.host_program) named.push_back(*manifest.host_program);
    for (const std::string& path : named) require(manifest.files.contains(path), "no digest for " + path);
    for (const auto& group : manifest.equal_dims)
        for (const host::Manifest::InputDim& one : group)
            require(one.input < manifest.inputs.size() && one.dim < manifest.inputs[one.input].dims.size(),
                    "a dimension that does not exist");
    for (const auto& [path, file] : manifest.files)
        require(!leads_out(path), "the path " + path + " is outside the bundle");
}

std::string read_manifest(std::string_view input) {
    return outcome_of({Code::manifest_invalid, Code::format_unknown, Code::path_outside}, [input] {
        try {
            require_consistent(host::parse_manifest(input));
        } catch (const Error& error) {
            require(std::string_view(error.what()).size() <= 1000, "a message of more than 1,000 bytes");
            throw;
        }
    });
}

std::string changed_manifest(std::string input, Random& random) {
    return changed_json(std::move(input), manifest_words, random);
}

}  // namespace

const Target manifest{"manifest", read_manifest, changed_manifest};

}  // namespace opwright::fuzz

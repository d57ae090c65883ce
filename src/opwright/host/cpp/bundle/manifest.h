// Reads manifest.json strictly: exactly the keys in docs/reference/format.md. Does not depend on PyTorch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "opwright/host/shape.h"

namespace opwright::host {

// A PyTorch release, such as 2.13.
struct Release {
    int major = 0;
    int minor = 0;
    auto operator<=>(const Release&) const = default;
};

struct Releases {
    Release oldest;
    std::optional<Release> newest;
};

// The GPUs that machine code supports: those of a compute capability such as 9.0, and newer ones of the same major
// version. PTX, which the driver compiles, also supports every newer major version.
struct Architecture {
    Release release;
    bool with_ptx = false;

    bool serves(Release gpu) const { return gpu >= release && (with_ptx || gpu.major == release.major); }
};

struct Manifest {
    enum class Kind { torchscript, aoti };

    struct Operator {
        std::string schema;
        bool called = false;
    };
    struct Library {
        std::string file;
        std::vector<std::string> namespaces;
        Releases torch;
        std::vector<Operator> operators;
    };
    struct Input {
        std::string name;
        std::string dtype;
        std::vector<Dimension> dims;
        std::optional<ImageRecipe> image;
    };
    // A dimension of an input, both by index.
    struct InputDim {
        size_t input = 0;
        size_t dim = 0;
    };
    struct Output {
        std::string name;
        std::string dtype;
        std::vector<std::optional<Dimension>> dims;
    };
    struct File {
        int64_t bytes = 0;
        std::string sha256;
    };

    std::string opwright;
    std::string model_file;
    Kind model_kind = Kind::torchscript;
    std::string precision;
    std::string torch_version;
    Releases torch;
    std::string device;
    std::string architecture;
    std::vector<std::string> cpu_features;
    std::vector<Architecture> cuda_architectures;
    std::vector<Library> libraries;
    std::vector<Input> inputs;
    std::vector<std::vector<InputDim>> equal_dims;
    std::vector<Output> outputs;
    double tolerance = 0;
    std::vector<std::string> goldens;
    std::optional<std::string> host_program;
    std::map<std::string, File> files;
};

// Throws Error with `manifest_invalid` (the place and what was expected there), `format_unknown` or `path_outside`.
Manifest parse_manifest(std::string_view text);

std::string to_string(Release release);

std::string to_string(const Architecture& architecture);

}  // namespace opwright::host

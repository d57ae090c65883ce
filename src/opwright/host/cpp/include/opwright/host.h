// Runs a bundle: a model and its operators, in a process without Python.
//
//     const auto model = opwright::Model::load("my_bundle");
//     const std::vector<at::Tensor> outputs = model.run({image});
//
// docs/reference/format.md describes what a bundle contains, and what is checked when.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "opwright/host/error.h"
#include "opwright/host/shape.h"

namespace opwright {

struct Input {
    std::string name;
    at::ScalarType dtype = at::ScalarType::Undefined;
    std::vector<Dimension> dims;
    std::optional<ImageRecipe> image;
};

struct Output {
    std::string name;
    at::ScalarType dtype = at::ScalarType::Undefined;
    std::vector<std::optional<Dimension>> dims;  // nullopt for a size that depends on the inputs
};

struct LoadOptions {
    // The number of concurrent runs of a package (.pt2); further runs wait. A TorchScript model has no such limit.
    int runners = 1;
};

// A loaded bundle. Copies share it. `run` is thread-safe.
class OPWRIGHT_HOST_API Model {
  public:
    // Checks the bundle in `folder`, loads its operator libraries for the lifetime of the process, and loads the model.
    // Throws Error.
    static Model load(const std::filesystem::path& folder, const LoadOptions& options = {});

    // Runs the model. `inputs` and the returned outputs are in the order of the manifest. Throws Error.
    std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;

    // The same, with inputs passed by name.
    std::vector<at::Tensor> run(const std::map<std::string, at::Tensor>& inputs) const;

    // Verifies every digest and runs the goldens. Throws Error if an element deviates from its golden by more than the
    // bundle's tolerance; otherwise returns the largest deviation, relative to the element's scale.
    double verify() const;

    const std::vector<Input>& inputs() const;
    const std::vector<Output>& outputs() const;
    const std::string& device() const;  // "cpu" or "cuda"

  private:
    struct Loaded;
    explicit Model(std::shared_ptr<const Loaded> loaded);
    std::shared_ptr<const Loaded> loaded_;
};

}  // namespace opwright

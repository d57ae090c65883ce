// Runs a bundle: a model and its operators, in a process without Python.
//
//     const auto model = opwright::Model::load("my_bundle");
//     const std::vector<at::Tensor> outputs = model.run({image});
//
// What a bundle is made of, and what is checked when, is written in docs/format.md.
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
    std::vector<std::optional<Dimension>> dims;  // empty where a size depends on the inputs
};

struct LoadOptions {
    // How many runs a package (.pt2) computes at a time; others wait. A TorchScript model has no such limit.
    int runners = 1;
};

// A loaded bundle. Copies share it; `run` may be called from many threads at once.
class OPWRIGHT_HOST_API Model {
  public:
    // Checks the bundle in `folder`, opens its operator libraries for the rest of the process, and loads the model.
    // Throws Error.
    static Model load(const std::filesystem::path& folder, const LoadOptions& options = {});

    // The outputs, in the order of the manifest, for `inputs` in its order. Throws Error.
    std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) const;

    // The same for inputs by their names.
    std::vector<at::Tensor> run(const std::map<std::string, at::Tensor>& inputs) const;

    // Compares every digest, and runs the goldens. Throws Error where an element is farther from its golden than the
    // bundle tolerates; else returns the largest difference, relative to the element's scale.
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

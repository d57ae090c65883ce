// A saved model, of either kind that runs without Python.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

namespace host {

class Model {
  public:
    Model() = default;
    virtual ~Model() = default;
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    // Throws what the model throws.
    virtual c10::IValue run(const std::vector<c10::IValue>& arguments) = 0;
};

// Throws Failure.
std::unique_ptr<Model> load_torchscript(const std::string& path);
std::unique_ptr<Model> load_package(const std::string& path);

// Says which operator is missing, and what to do.
[[noreturn]] void throw_missing_operator(const std::string& path, std::string name);

}  // namespace host

// A saved model of either kind that runs without Python.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace opwright::host {

class SavedModel {
  public:
    SavedModel() = default;
    virtual ~SavedModel() = default;
    SavedModel(const SavedModel&) = delete;
    SavedModel& operator=(const SavedModel&) = delete;

    // Thread-safe. Throws what the model throws.
    virtual c10::IValue run(const std::vector<c10::IValue>& arguments) = 0;
};

// Throws Error.
std::unique_ptr<SavedModel> load_torchscript(const std::string& path, at::Device device = at::kCPU);

// PyTorch profiles the tensors of a TorchScript model's first run and specializes the model for them, so that later
// runs may round differently. After this call, models that have not run yet compute every run as they compute the
// first. Applies to the whole process.
void run_torchscript_without_profile();

// `expected`: the device that it must be compiled for. `runners`: the number of concurrent runs. Throws Error.
std::unique_ptr<SavedModel> load_package(const std::string& path, std::optional<at::DeviceType> expected = std::nullopt,
                                         int runners = 1);

// Appends the tensors in a value to `tensors`, including those in tuples, lists and dicts, and ignores everything else.
// Throws std::runtime_error for a value that nests deeper than any model's.
void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors);

// Throws Error with `operator_missing`.
[[noreturn]] void throw_missing_operator(const std::string& path, std::string name);

}  // namespace opwright::host

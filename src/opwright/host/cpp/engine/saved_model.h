// A saved model, of either kind that runs without Python.
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

    // May be called from many threads at once. Throws what the model throws.
    virtual c10::IValue run(const std::vector<c10::IValue>& arguments) = 0;
};

// Throws Error.
std::unique_ptr<SavedModel> load_torchscript(const std::string& path, at::Device device = at::kCPU);

// PyTorch notes the tensors of the first run of a TorchScript model, and rewrites the model for tensors like them: its
// later runs may round differently. From here on, models that have not run yet give in every run what they give in the
// first. For the whole process.
void run_torchscript_without_profile();

// `expected`: the device that it has to be compiled for. `runners`: how many runs are computed at a time. Throws Error.
std::unique_ptr<SavedModel> load_package(const std::string& path, std::optional<at::DeviceType> expected = std::nullopt,
                                         int runners = 1);

// Appends the tensors of a value to `tensors`: those in tuples, lists and dicts too, and nothing else. Throws
// std::runtime_error for a value that nests deeper than any model's.
void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors);

// Throws Error with `operator_missing`.
[[noreturn]] void throw_missing_operator(const std::string& path, std::string name);

}  // namespace opwright::host

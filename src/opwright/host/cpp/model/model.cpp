// The public interface: loads a bundle and runs it.
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <torch/version.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "bundle/folder.h"
#include "bundle/processor.h"
#include "engine/archive.h"
#include "engine/device.h"
#include "engine/dtypes.h"
#include "engine/plain_number.h"
#include "engine/reason.h"
#include "engine/saved_model.h"
#include "model/deviation.h"
#include "model/device.h"
#include "model/inputs.h"
#include "model/libraries.h"
#include "model/outputs.h"
#include "opwright/host.h"

const char* const opwright::host::program_name = "host";

namespace opwright {

struct Model::Loaded {
    static std::shared_ptr<const Loaded> from(const std::filesystem::path& folder, const LoadOptions& options);

    // Returns how far the outputs deviate from a golden. Throws Error if they deviate too far.
    double deviation_from(const std::string& name, const Model& model) const;

    std::filesystem::path folder;
    host::Manifest manifest;
    at::Device device = at::kCPU;
    std::vector<Input> inputs;
    std::vector<Output> outputs;
    std::unique_ptr<host::SavedModel> saved;
};

namespace {

at::ScalarType dtype_of(const std::string& name, const std::string& of) {
    const at::ScalarType dtype = host::dtype_from_name(name);
    if (dtype == at::ScalarType::Undefined)
        throw Error(Code::manifest_invalid,
                    "manifest.json is invalid: " + of + " has the dtype \"" + name +
                        "\", which this PyTorch does not support; expected one such as \"float32\"");
    return dtype;
}

std::vector<Input> inputs_of(const host::Manifest& manifest) {
    std::vector<Input> inputs;
    for (const auto& [name, dtype, dims, image] : manifest.inputs)
        inputs.push_back({name, dtype_of(dtype, "the input " + name), dims, image});
    return inputs;
}

std::vector<Output> outputs_of(const host::Manifest& manifest) {
    std::vector<Output> outputs;
    for (const auto& [name, dtype, dims] : manifest.outputs)
        outputs.push_back({name, dtype_of(dtype, "the output " + name), dims});
    return outputs;
}

void check_torch(const host::Releases& releases, const std::string& what) {
    constexpr host::Release own{TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR};
    if (own >= releases.oldest && (!releases.newest || own <= *releases.newest)) return;
    const std::string expected = !releases.newest ? to_string(releases.oldest) + " or newer"
                                 : *releases.newest == releases.oldest
                                     ? to_string(releases.oldest)
                                     : to_string(releases.oldest) + " to " + to_string(*releases.newest);
    throw Error(Code::torch_unsupported, what + " requires PyTorch " + expected + ", but this host has " +
                                             TORCH_VERSION +
                                             ": run it with a host of that PyTorch, or ship the model again with this "
                                             "one");
}

std::unique_ptr<host::SavedModel> load_saved(const std::filesystem::path& folder, const host::Manifest& manifest,
                                             at::Device device, int runners) {
    const std::string path = (folder / manifest.model_file).string();
    if (manifest.model_kind == host::Manifest::Kind::torchscript) return host::load_torchscript(path, device);
    return host::load_package(path, device.type(), runners);
}

std::vector<at::Tensor> tensors(const c10::IValue& value) {
    std::vector<at::Tensor> found;
    host::collect_tensors(value, found);
    return found;
}

}  // namespace

std::shared_ptr<const Model::Loaded> Model::Loaded::from(const std::filesystem::path& folder,
                                                         const LoadOptions& options) {
    auto loaded = std::make_shared<Loaded>();
    loaded->folder = folder;
    loaded->manifest = host::read_manifest(folder);
    const host::Manifest& manifest = loaded->manifest;
    // Check all of it, because a library of the bundle may depend on one in host/.
    const bool is_own = host::is_own_program(folder, manifest);
    host::check_files(folder, manifest, is_own ? host::Part::all_but_host : host::Part::all);
    loaded->inputs = inputs_of(manifest);
    loaded->outputs = outputs_of(manifest);
    check_torch(manifest.torch, "the bundle " + folder.string());
    for (const host::Manifest::Library& library : manifest.libraries)
        check_torch(library.torch, "the library " + library.file);
    host::check_processor(manifest);
    host::check_device(manifest);
    loaded->device = host::current_device(manifest.device == "cuda" ? at::kCUDA : at::kCPU);
    if (!loaded->device.is_cpu()) host::compute_in_whole_float32();
    host::require_free_namespaces(manifest);
    host::open_libraries(folder, manifest);
    host::check_operators(manifest);
    loaded->saved = load_saved(folder, manifest, loaded->device, options.runners);
    return loaded;
}

double Model::Loaded::deviation_from(const std::string& name, const Model& model) const {
    const c10::IValue golden = host::read_archive("golden", (folder / name).string(), Code::golden_differs);
    if (!golden.isTuple() || golden.toTupleRef().elements().size() != 3)
        throw Error(Code::golden_differs, name + " is not a tuple of inputs, outputs and scales");
    std::vector<at::Tensor> given = tensors(golden.toTupleRef().elements()[0]);
    for (at::Tensor& input : given) input = input.to(device);
    const std::vector<at::Tensor> wanted = tensors(golden.toTupleRef().elements()[1]);
    const std::vector<at::Tensor> scales = tensors(golden.toTupleRef().elements()[2]);
    const std::vector<at::Tensor> found = model.run(given);
    if (wanted.size() != found.size())
        throw Error(Code::golden_differs, name + " holds " + std::to_string(wanted.size()) + " outputs; expected " +
                                              std::to_string(found.size()));
    double farthest = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        const std::string what = "the output " + outputs[i].name + " for " + name;
        if (found[i].sizes() != wanted[i].sizes() || found[i].scalar_type() != wanted[i].scalar_type())
            throw Error(Code::golden_differs,
                        what + " does not have the shape and dtype that it had when the bundle was shipped");
        if (scales.size() <= i || scales[i].sizes() != wanted[i].sizes() || !scales[i].is_floating_point())
            throw Error(Code::golden_differs, what + " has no scale of its shape");
        const double far = host::relative_deviation(found[i], wanted[i], scales[i]);
        if (!(far <= manifest.tolerance))
            throw Error(Code::golden_differs, what + " differs by " + host::plain_number(far) +
                                                  " times an element's scale; expected at most " +
                                                  host::plain_number(manifest.tolerance));
        farthest = std::max(farthest, far);
    }
    return farthest;
}

Model::Model(std::shared_ptr<const Loaded> loaded) : loaded_(std::move(loaded)) {}

Model Model::load(const std::filesystem::path& folder, const LoadOptions& options) {
    if (options.runners < 1)
        throw Error(Code::usage, "runners is " + std::to_string(options.runners) + "; expected at least 1");
    // Libraries register their operators in process-wide tables.
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    try {
        return Model(Loaded::from(folder, options));
    } catch (const Error&) {
        throw;
    } catch (...) {
        throw Error(Code::internal,
                    "the bundle " + folder.string() + " cannot be loaded: " + host::current_exception_reason());
    }
}

std::vector<at::Tensor> Model::run(const std::vector<at::Tensor>& inputs) const {
    host::check_inputs(loaded_->inputs, loaded_->device, inputs);
    host::check_equal_dims(loaded_->manifest, inputs);
    const c10::AutoGradMode without_gradients(false);
    const c10::DeviceGuard on_its_device(loaded_->device);  // the caller may be using another GPU
    // A package reads its inputs' memory with the row-major layout of its samples, without checking their strides.
    const bool as_they_are = loaded_->manifest.model_kind == host::Manifest::Kind::torchscript;
    std::vector<at::Tensor> found;
    try {
        std::vector<c10::IValue> arguments;
        for (const at::Tensor& input : inputs) arguments.emplace_back(as_they_are ? input : input.contiguous());
        found = tensors(loaded_->saved->run(arguments));
    } catch (...) {
        throw Error(Code::run_failed, "the model failed on these inputs: " + host::current_exception_reason());
    }
    host::check_outputs(loaded_->outputs, found);
    return found;
}

std::vector<at::Tensor> Model::run(const std::map<std::string, at::Tensor>& inputs) const {
    return run(host::inputs_by_name(loaded_->inputs, inputs));
}

double Model::verify() const {
    host::check_files(loaded_->folder, loaded_->manifest, host::Part::all);
    if (loaded_->manifest.goldens.empty())
        throw Error(Code::golden_differs,
                    "the bundle " + loaded_->folder.string() +
                        " has no goldens, so there is nothing to compare its model with; expected "
                        "at least one: ship the model again");
    double farthest = 0;
    for (const std::string& name : loaded_->manifest.goldens) {
        try {
            farthest = std::max(farthest, loaded_->deviation_from(name, *this));
        } catch (const Error&) {
            throw;
        } catch (...) {
            throw Error(Code::golden_differs, name + " cannot be compared: " + host::current_exception_reason());
        }
    }
    return farthest;
}

const std::vector<Input>& Model::inputs() const {
    return loaded_->inputs;
}

const std::vector<Output>& Model::outputs() const {
    return loaded_->outputs;
}

const std::string& Model::device() const {
    return loaded_->manifest.device;
}

}  // namespace opwright

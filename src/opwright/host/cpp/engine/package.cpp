// Packages that AOTInductor compiled.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/version.h>

#include <string_view>

#include "engine/reason.h"
#include "engine/saved_model.h"
#include "engine/unpacked_package.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
using PackageSource = UnpackedPackage;
#else
// PyTorch before 2.13 loads no unpacked package. It unpacks the archive itself, into $TMPDIR or /tmp.
class PackageSource {
  public:
    explicit PackageSource(const std::string& path) : path_(path) {}
    const std::string& folder() const { return path_; }
    void remove() {}

  private:
    std::string path_;
};
#endif

class Package : public SavedModel {
  public:
    Package(const std::string& path, int runners)
        : source_(path), loader_(source_.folder(), "model", false, static_cast<size_t>(runners), -1) {
        // The code is mapped by now, and a process that is killed leaves nothing. Kernels for GPUs are opened when they
        // first run.
        if (loader_.get_metadata()["AOTI_DEVICE_KEY"] == "cpu") source_.remove();
    }

    // Everything but tensors was fixed when the model was exported.
    c10::IValue run(const std::vector<c10::IValue>& arguments) override {
        std::vector<at::Tensor> tensors;
        for (const c10::IValue& argument : arguments) collect_tensors(argument, tensors);
        return loader_.run(tensors);
    }

  private:
    PackageSource source_;  // outlives the loader
    torch::inductor::AOTIModelPackageLoader loader_;
};

}  // namespace

std::unique_ptr<SavedModel> load_package(const std::string& path, int runners) {
    check_package(path);
    try {
        return std::make_unique<Package>(path, runners);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        const std::string why = reason(error);
        constexpr std::string_view unknown = "Could not find schema for ";
        if (!why.starts_with(unknown)) throw Error(Code::model_invalid, "model " + path + " cannot be read: " + why);
        throw_missing_operator(path, why.substr(unknown.size()));
    }
}

}  // namespace opwright::host

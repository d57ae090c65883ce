// Loads packages compiled by AOTInductor.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/version.h>

#include <memory>
#include <optional>
#include <string_view>

#include "engine/device.h"
#include "engine/reason.h"
#include "engine/saved_model.h"
#include "engine/unpacked_package.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
using PackageSource = UnpackedPackage;
#else
// Releases of PyTorch before 2.13 do not load unpacked packages. They unpack the archive themselves, into /tmp.
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
    Package(const std::string& path, std::optional<at::DeviceType> expected, int runners)
        : source_(path),
          loader_(std::make_unique<Loader>(source_.folder(), "model", false, static_cast<size_t>(runners), -1)),
          device_(loader_->get_metadata()["AOTI_DEVICE_KEY"]) {
        // Its code would use an address in one device's memory as an address in the other's.
        if (expected && device_.type() != *expected)
            throw Error(Code::model_invalid, "model " + path + " was compiled for " + device_.str() +
                                                 "; expected one for " + c10::DeviceTypeName(*expected, true) +
                                                 ": ship the model again");
        // The code is mapped by now, so that a killed process leaves nothing behind. Kernels for GPUs are opened when
        // they first run.
        if (device_.is_cpu()) source_.remove();
    }
    // Freeing the memory of a lost GPU throws, which a destructor must not: the process keeps it.
    ~Package() override {
        if (is_lost(device_)) (void)loader_.release();
    }
    Package(const Package&) = delete;
    Package& operator=(const Package&) = delete;

    // Everything except tensors was fixed when the model was exported.
    c10::IValue run(const std::vector<c10::IValue>& arguments) override {
        std::vector<at::Tensor> tensors;
        for (const c10::IValue& argument : arguments) collect_tensors(argument, tensors);
        return loader_->run(tensors);
    }

  private:
    using Loader = torch::inductor::AOTIModelPackageLoader;

    PackageSource source_;  // outlives the loader
    std::unique_ptr<Loader> loader_;
    at::Device device_;
};

}  // namespace

std::unique_ptr<SavedModel> load_package(const std::string& path, std::optional<at::DeviceType> expected, int runners) {
    check_package(path);
    try {
        return std::make_unique<Package>(path, expected, runners);
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

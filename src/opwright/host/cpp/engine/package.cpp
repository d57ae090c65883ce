// Packages that AOTInductor compiled.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <string_view>

#include "engine/reason.h"
#include "engine/saved_model.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

class Package : public SavedModel {
  public:
    Package(const std::string& path, int runners) : loader_(path, "model", false, static_cast<size_t>(runners), -1) {}

    // Everything but tensors was fixed when the model was exported.
    c10::IValue run(const std::vector<c10::IValue>& arguments) override {
        std::vector<at::Tensor> tensors;
        for (const c10::IValue& argument : arguments) collect_tensors(argument, tensors);
        return loader_.run(tensors);
    }

  private:
    torch::inductor::AOTIModelPackageLoader loader_;
};

}  // namespace

std::unique_ptr<SavedModel> load_package(const std::string& path, int runners) {
    try {
        return std::make_unique<Package>(path, runners);
    } catch (const std::exception& error) {
        const std::string why = reason(error);
        constexpr std::string_view unknown = "Could not find schema for ";
        if (!why.starts_with(unknown)) throw Error(Code::model_invalid, "model " + path + " cannot be read: " + why);
        throw_missing_operator(path, why.substr(unknown.size()));
    }
}

}  // namespace opwright::host

// Packages that AOTInductor compiled.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <string_view>

#include "failure.h"
#include "model.h"

namespace host {
namespace {

void collect_tensors(const std::vector<c10::IValue>& values, std::vector<at::Tensor>& tensors) {
    for (const c10::IValue& value : values) {
        if (value.isTensor())
            tensors.push_back(value.toTensor());
        else if (value.isTuple())
            collect_tensors(value.toTupleRef().elements().vec(), tensors);
        else if (value.isList())
            collect_tensors(value.toListRef().vec(), tensors);
    }
}

class Package : public Model {
  public:
    explicit Package(const std::string& path) : loader_(path, "model", false, 1, -1) {}

    // Everything but tensors was fixed when the model was exported.
    c10::IValue run(const std::vector<c10::IValue>& arguments) override {
        std::vector<at::Tensor> tensors;
        collect_tensors(arguments, tensors);
        return loader_.run(tensors);
    }

  private:
    torch::inductor::AOTIModelPackageLoader loader_;
};

}  // namespace

std::unique_ptr<Model> load_package(const std::string& path) {
    try {
        return std::make_unique<Package>(path);
    } catch (const std::exception& error) {
        const std::string why = reason(error);
        constexpr std::string_view unknown = "Could not find schema for ";
        if (!why.starts_with(unknown)) throw Failure(broken_model, "model " + path + " cannot be read: " + why);
        throw_missing_operator(path, why.substr(unknown.size()));
    }
}

}  // namespace host

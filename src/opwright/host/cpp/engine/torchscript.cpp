// Loads models written by torch.jit.save.
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "engine/reason.h"
#include "engine/saved_model.h"
#include "opwright/host/error.h"

namespace opwright::host {
namespace {

std::vector<c10::IValue> elements(const c10::IValue& value) {
    return value.isTuple() ? value.toTupleRef().elements().vec() : value.toListRef().vec();
}

// A pickle does not store a list's element type, which the schema requires, and Python callers may pass an int for a
// float.
c10::IValue coerced(const c10::IValue& value, const c10::TypePtr& type) {
    if (const auto optional = type->cast<c10::OptionalType>(); optional && !value.isNone())
        return coerced(value, optional->getElementType());
    if (type->kind() == c10::TypeKind::FloatType && value.isInt()) return static_cast<double>(value.toInt());
    const bool holds_more = value.isTuple() || value.isList();
    if (const auto list_type = type->cast<c10::ListType>(); list_type && holds_more) {
        c10::impl::GenericList list(list_type->getElementType());
        for (const c10::IValue& element : elements(value))
            list.push_back(coerced(element, list_type->getElementType()));
        return list;
    }
    if (const auto tuple_type = type->cast<c10::TupleType>(); tuple_type && holds_more) {
        std::vector<c10::IValue> tuple = elements(value);
        for (size_t i = 0; i < std::min(tuple.size(), tuple_type->elements().size()); ++i)
            tuple[i] = coerced(tuple[i], tuple_type->elements()[i]);
        return c10::ivalue::Tuple::create(std::move(tuple));
    }
    return value;
}

// Bounds the traversal: a value may contain itself, or contain the same value twice at every level.
class Collector {
  public:
    explicit Collector(std::vector<at::Tensor>& tensors) : tensors_(tensors) {}

    void add(const c10::IValue& value) {
        if (value.isTensor()) tensors_.push_back(value.toTensor());
        if (value.isTuple()) enter([&] { add_all(value.toTupleRef().elements()); });
        if (value.isList()) enter([&] { add_all(value.toListRef()); });
        if (value.isGenericDict())
            enter([&] {
                for (const auto& entry : value.toGenericDict()) add(entry.value());
            });
    }

  private:
    static constexpr size_t deepest = 100, most = size_t{1} << 20;

    template <typename Elements>
    void add_all(const Elements& elements) {
        for (const c10::IValue& element : elements) add(element);
    }

    template <typename Inside>
    void enter(const Inside& inside) {
        if (++depth_ > deepest) throw std::runtime_error("a value nests deeper than 100 levels, or contains itself");
        if (++entered_ > most) throw std::runtime_error("a value contains more than 1,048,576 tuples, lists and dicts");
        inside();
        --depth_;
    }

    std::vector<at::Tensor>& tensors_;
    size_t depth_ = 0, entered_ = 0;
};

class TorchScript : public SavedModel {
  public:
    explicit TorchScript(torch::jit::Module module) : module_(std::move(module)) {}

    c10::IValue run(const std::vector<c10::IValue>& arguments) override {
        const auto& parameters = module_.get_method("forward").function().getSchema().arguments();
        std::vector<c10::IValue> inputs = arguments;
        for (size_t i = 0; i < std::min(inputs.size(), parameters.size() - 1); ++i)
            inputs[i] = coerced(inputs[i], parameters[i + 1].type());  // the schema counts `self`
        return module_.forward(std::move(inputs));
    }

  private:
    torch::jit::Module module_;
};

}  // namespace

std::unique_ptr<SavedModel> load_torchscript(const std::string& path, at::Device device) {
    try {
        return std::make_unique<TorchScript>(torch::jit::load(path, device));
    } catch (const std::exception& error) {
        const std::string why = reason(error);
        constexpr std::string_view unknown = "Unknown builtin op: ";
        if (!why.starts_with(unknown)) throw Error(Code::model_invalid, "model " + path + " cannot be read: " + why);
        throw_missing_operator(path, why.substr(unknown.size()));
    }
}

void run_torchscript_without_profile() {
    torch::jit::FusionStrategy none;  // without a specialization strategy, the executor does not profile
    torch::jit::setFusionStrategy(none);
}

void collect_tensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
    Collector(tensors).add(value);
}

void throw_missing_operator(const std::string& path, std::string name) {
    name.erase(std::min(name.find_last_not_of('.') + 1, name.size()));  // the end of PyTorch's sentence
    throw Error(Code::operator_missing, "model " + path + " needs the operator " + name +
                                            ", which no library in this program provides: pass its library with --ops "
                                            "when shipping the model, or link it into the program");
}

}  // namespace opwright::host

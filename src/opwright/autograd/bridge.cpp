// C++ autograd for every operator that names a native backward.
//
// An operator library says, as text behind `opwright_gradients()`, which operator computes the gradient of which other
// one and what it needs of the forward call. This file, compiled once for a PyTorch, reads that of every library in the
// process and puts one boxed kernel at the Autograd key of each such operator. It is the one place that needs PyTorch's
// unstable C++ interface for autograd, so that operator libraries do not.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>
#include <link.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::jit::Stack;

// What a backward operator gets of the forward call: an argument, or one of its results.
struct Saved {
    bool is_result;
    std::size_t index;
};

// One line of `opwright_gradients()`: "mine::scale mine::scale_backward 0,2 0,1,r0 1", that is the operator, its
// backward, its differentiable arguments, what it saves ("-" for nothing), and whether the backward is told what is
// wanted.
struct Gradient {
    std::string forward;
    std::string backward;
    std::vector<std::size_t> differentiable;
    std::vector<Saved> saves;
    bool says_wanted;
    std::size_t number;  // its place in the table of all gradients

    std::once_flag found_once;
    std::optional<c10::OperatorHandle> found;

    // Looked for when it is first needed: the backward may be defined after its forward.
    const c10::OperatorHandle& handle() {
        std::call_once(found_once,
                       [this] { found = c10::Dispatcher::singleton().findSchemaOrThrow(backward.c_str(), ""); });
        return *found;
    }
};

// Never destroyed, and the entries never moved: graphs refer to them by number until the process ends.
std::deque<Gradient>& gradients() {
    static auto* const all = new std::deque<Gradient>();
    return *all;
}

// Calls `act` with each tensor that a value holds: itself, or the elements of a list. None has no tensor.
template <class Act>
void for_each_tensor(const c10::IValue& value, Act&& act) {
    if (value.isTensor()) {
        act(value.toTensor());
    } else if (value.isTensorList()) {
        for (const at::Tensor& element : value.toTensorVector()) act(element);
    } else if (value.isList()) {  // Tensor?[]
        for (const c10::IValue& element : value.toListRef())
            act(element.isTensor() ? element.toTensor() : at::Tensor());
    }
}

struct Call {
    Gradient& gradient;
    const c10::OperatorHandle& op;
    c10::DispatchKeySet keys;
    Stack& stack;
    const std::vector<std::int64_t>& lengths;  // how many tensors each differentiable argument holds; empty: one each
};

// The names under which a context keeps what is no tensor; made once, since every call uses them.
const std::string& key(std::size_t index) {
    static const auto* const names = [] {
        auto* made = new std::vector<std::string>();
        for (int i = 0; i < 256; ++i) made->push_back(std::to_string(i));
        return made;
    }();
    return names->at(index);
}

const std::string& number_key() {
    static const auto* const name = new std::string("gradient");
    return *name;
}

const std::string& lengths_key() {
    static const auto* const name = new std::string("lengths");
    return *name;
}

// A list keeps its length in the context, and its tensors among the saved ones; a tensor is just saved.
void save(AutogradContext& context, std::size_t at, const c10::IValue& value, variable_list& tensors) {
    if (value.isTensor()) {
        tensors.push_back(value.toTensor());
    } else if (value.isTensorList() ||
               (value.isList() && value.toList().elementType()->kind() == c10::OptionalType::Kind)) {
        const std::size_t before = tensors.size();
        for_each_tensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
        context.saved_data[key(at)] = static_cast<std::int64_t>(tensors.size() - before);
    } else {
        context.saved_data[key(at)] = value;
    }
}

struct Bridge : torch::autograd::Function<Bridge> {
    static constexpr auto is_traceable = false;

    static variable_list forward(AutogradContext* context, at::TensorList, const Call& call) {
        const Gradient& gradient = call.gradient;
        const std::size_t arguments = call.op.schema().arguments().size();
        const std::size_t results = call.op.schema().returns().size();
        variable_list saved;
        const std::size_t base = call.stack.size() - arguments;
        for (std::size_t at = 0; at < gradient.saves.size(); ++at) {
            if (!gradient.saves[at].is_result) save(*context, at, call.stack[base + gradient.saves[at].index], saved);
        }
        {
            const at::AutoDispatchBelowADInplaceOrView guard;
            call.op.redispatchBoxed(call.keys & c10::after_autograd_keyset, &call.stack);
        }
        variable_list outputs;
        outputs.reserve(results);
        for (std::size_t at = 0; at < results; ++at) outputs.push_back(call.stack[base + at].toTensor());
        for (const Saved& save : gradient.saves) {
            if (save.is_result) saved.push_back(outputs[save.index]);
        }
        context->save_for_backward(std::move(saved));
        context->saved_data[number_key()] = static_cast<std::int64_t>(gradient.number);
        if (!call.lengths.empty()) context->saved_data[lengths_key()] = call.lengths;
        context->set_materialize_grads(false);
        return outputs;
    }

    static variable_list backward(AutogradContext* context, const variable_list& incoming) {
        Gradient& gradient = gradients()[static_cast<std::size_t>(context->saved_data[number_key()].toInt())];
        const c10::OperatorHandle& op = gradient.handle();
        const auto& parameters = op.schema().arguments();
        const variable_list saved = context->get_saved_variables();
        Stack stack;
        stack.reserve(parameters.size());
        for (const at::Tensor& grad : incoming) {
            // Nothing flows back to a result that nobody used: None, for the operator to take as zero.
            if (grad.defined()) {
                stack.emplace_back(grad);
            } else {
                stack.emplace_back();
            }
        }
        push_saved(*context, gradient, saved, parameters, stack);
        const std::vector<std::size_t> lengths = lengths_of(*context, gradient);
        const std::vector<bool> wanted = wanted_of(*context, lengths);
        if (gradient.says_wanted) stack.emplace_back(c10::List<bool>(wanted_list(wanted)));
        op.callBoxed(&stack);
        return in_order(stack, lengths);
    }

  private:
    static void push_saved(AutogradContext& context, const Gradient& gradient, const variable_list& saved,
                           const std::vector<c10::Argument>& parameters, Stack& stack) {
        // Arguments were saved before the forward ran, results after it.
        std::size_t of_results = saved.size();
        for (const Saved& save : gradient.saves) of_results -= save.is_result ? 1 : 0;
        std::size_t of_arguments = 0;
        for (std::size_t at = 0; at < gradient.saves.size(); ++at) {
            if (gradient.saves[at].is_result) {
                stack.emplace_back(saved[of_results++]);
                continue;
            }
            const c10::TypePtr& type = parameters[stack.size()].type();
            const auto kept = context.saved_data.find(key(at));
            if (kept == context.saved_data.end()) {
                stack.emplace_back(saved[of_arguments++]);
            } else if (type->kind() == c10::ListType::Kind && kept->second.isInt()) {
                const auto length = static_cast<std::size_t>(kept->second.toInt());
                stack.push_back(
                    list_of(*type->expectRef<c10::ListType>().getElementType(), saved, of_arguments, length));
                of_arguments += length;
            } else {
                stack.push_back(kept->second);
            }
        }
    }

    static c10::IValue list_of(const c10::Type& element, const variable_list& saved, std::size_t from,
                               std::size_t length) {
        if (element.kind() == c10::TensorType::Kind) {
            return c10::List<at::Tensor>(variable_list(saved.begin() + static_cast<std::ptrdiff_t>(from),
                                                       saved.begin() + static_cast<std::ptrdiff_t>(from + length)));
        }
        c10::List<std::optional<at::Tensor>> list;
        list.reserve(length);
        for (std::size_t i = from; i < from + length; ++i) {
            list.push_back(saved[i].defined() ? std::optional(saved[i]) : std::nullopt);
        }
        return list;
    }

    // How many tensors each differentiable argument held: one, unless it is a list.
    static std::vector<std::size_t> lengths_of(const AutogradContext& context, const Gradient& gradient) {
        std::vector<std::size_t> lengths(gradient.differentiable.size(), 1);
        const auto found = context.saved_data.find(lengths_key());
        if (found == context.saved_data.end()) return lengths;
        const std::vector<std::int64_t> kept = found->second.toIntVector();
        std::copy(kept.begin(), kept.end(), lengths.begin());
        return lengths;
    }

    // An argument's gradient is wanted when that of one of its tensors is.
    static std::vector<bool> wanted_of(const AutogradContext& context, const std::vector<std::size_t>& lengths) {
        std::vector<bool> wanted;
        wanted.reserve(lengths.size());
        std::size_t edge = 0;
        for (const std::size_t length : lengths) {
            bool any = false;
            for (std::size_t i = 0; i < length; ++i) any |= context.needs_input_grad(edge++);
            wanted.push_back(any);
        }
        return wanted;
    }

    static c10::List<bool> wanted_list(const std::vector<bool>& wanted) {
        c10::List<bool> list;
        list.reserve(wanted.size());
        for (const bool one : wanted) list.push_back(one);
        return list;
    }

    // The results of the backward operator as one gradient for each tensor that `apply` was given, and none for the
    // call.
    static variable_list in_order(const Stack& results, const std::vector<std::size_t>& lengths) {
        variable_list grads;
        for (std::size_t at = 0; at < lengths.size(); ++at) {
            const std::size_t before = grads.size();
            if (at < results.size()) {
                for_each_tensor(results[at], [&](const at::Tensor& grad) { grads.push_back(grad); });
            }
            grads.resize(before + lengths[at]);
        }
        grads.emplace_back();
        return grads;
    }
};

class AutogradKernel final : public c10::OperatorKernel {
  public:
    explicit AutogradKernel(Gradient& gradient) : gradient_(gradient) {}

    void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
        const std::size_t base = stack->size() - op.schema().arguments().size();
        variable_list tensors;
        std::vector<std::int64_t> lengths;
        bool needed = false;
        for (std::size_t at = 0; at < gradient_.differentiable.size(); ++at) {
            const c10::IValue& argument = (*stack)[base + gradient_.differentiable[at]];
            const std::size_t before = tensors.size();
            for_each_tensor(argument, [&](const at::Tensor& tensor) {
                needed |= tensor.defined() && tensor.requires_grad();
                tensors.push_back(tensor);
            });
            if (argument.isList()) {
                lengths.resize(gradient_.differentiable.size(), 1);
                lengths[at] = static_cast<std::int64_t>(tensors.size() - before);
            } else if (tensors.size() == before) {
                tensors.emplace_back();  // None
            }
        }
        if (!needed || !c10::GradMode::is_enabled()) {
            const at::AutoDispatchBelowADInplaceOrView guard;
            op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
            return;
        }
        const Call call{gradient_, op, keys, *stack, lengths};
        const variable_list outputs = Bridge::apply(at::TensorList(tensors), call);
        for (std::size_t at = 0; at < outputs.size(); ++at) (*stack)[base + at] = outputs[at];
    }

  private:
    Gradient& gradient_;
};

std::vector<std::string> split(const std::string& text, char by) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
    return parts;
}

void read_line(const std::string& line, Gradient& into) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() != 5) throw std::runtime_error("the gradient \"" + line + "\" is not of five words");
    into.forward = words[0];
    into.backward = words[1];
    for (const std::string& index : split(words[2], ',')) into.differentiable.push_back(std::stoul(index));
    if (words[3] != "-") {
        for (const std::string& saved : split(words[3], ',')) {
            const bool is_result = saved.starts_with('r');
            into.saves.push_back({is_result, std::stoul(saved.substr(is_result ? 1 : 0))});
        }
    }
    into.says_wanted = words[4] == "1";
}

using GradientsText = const char*();

// The `opwright_gradients` of every shared object in this process, each once.
std::set<GradientsText*> texts_in_process() {
    std::vector<std::string> names;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* into) {
            static_cast<std::vector<std::string>*>(into)->emplace_back(info->dlpi_name);
            return 0;
        },
        &names);
    std::set<GradientsText*> found;
    for (const std::string& name : names) {
        void* object = dlopen(name.empty() ? nullptr : name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (object == nullptr) continue;
        if (auto* text = reinterpret_cast<GradientsText*>(dlsym(object, "opwright_gradients"))) found.insert(text);
        dlclose(object);
    }
    return found;
}

void attach(const std::string& line) {
    static auto* const libraries = new std::vector<std::unique_ptr<torch::Library>>();
    Gradient& gradient = gradients().emplace_back();
    gradient.number = gradients().size() - 1;
    try {
        read_line(line, gradient);
        const std::size_t colons = gradient.forward.find("::");
        if (colons == std::string::npos) throw std::runtime_error(gradient.forward + " is no operator's name");
        auto library = std::make_unique<torch::Library>(torch::Library::IMPL, gradient.forward.substr(0, colons),
                                                        c10::DispatchKey::Autograd, __FILE__, __LINE__);
        library->impl(gradient.forward.substr(colons + 2).c_str(),
                      torch::CppFunction::makeFromBoxedFunctor(std::make_unique<AutogradKernel>(gradient)));
        libraries->push_back(std::move(library));
    } catch (...) {
        gradients().pop_back();
        throw;
    }
}

}  // namespace

// Gives autograd to the operators of every library that was loaded since the last call. Null when all is well, else one
// line that says what is not.
extern "C" __attribute__((visibility("default"))) const char* opwright_attach_gradients() {
    static std::mutex mutex;
    static auto* const attached = new std::set<GradientsText*>();
    static auto* const error = new std::string();
    const std::lock_guard lock(mutex);
    try {
        for (GradientsText* text : texts_in_process()) {
            if (attached->contains(text)) continue;
            for (const std::string& line : split(text(), '\n')) attach(line);
            attached->insert(text);
        }
        return nullptr;
    } catch (const std::exception& problem) {
        *error = problem.what();
        return error->c_str();
    }
}

__attribute__((constructor)) static void attach_what_is_there() {
    if (const char* error = opwright_attach_gradients()) std::fprintf(stderr, "opwright: %s\n", error);
}

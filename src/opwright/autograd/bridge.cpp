// C++ autograd for every operator that names a native backward.
//
// An operator library says, as text behind `opwright_gradients()`, which operator computes the gradient of which other
// one and what it needs of the forward call. This file, compiled once for a PyTorch, reads that of every library in the
// process and puts one boxed kernel at the Autograd key of each such operator. It is the one place that needs PyTorch's
// unstable C++ interface for autograd, so that operator libraries do not.
#include <ATen/FuncTorchTLS.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/SmallVector.h>
#include <dlfcn.h>
#include <link.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
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
// wanted. Graphs point to it, so it is never destroyed.
struct Gradient {
    std::string forward;
    std::string backward;
    std::vector<std::size_t> differentiable;
    std::vector<Saved> saves;
    bool says_wanted = false;

    std::once_flag found_once;
    std::optional<c10::OperatorHandle> found;

    // Looked for when it is first needed: the backward may be defined after its forward.
    const c10::OperatorHandle& handle() {
        std::call_once(found_once,
                       [this] { found = c10::Dispatcher::singleton().findSchemaOrThrow(backward.c_str(), ""); });
        return *found;
    }
};

// Whether torch.func transforms what runs now.
bool is_in_a_transformation() {
    return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

// torch::autograd::Function refuses to run inside of the transformations of torch.func, because in general it would be
// entered once, from outside, and not once for each transformation. The kernel below is entered by the dispatcher, as
// PyTorch's own are. So the state of torch.func is put out of sight of that one check, and is back for the forward.
class FunctorchOutOfSight {
  public:
    explicit FunctorchOutOfSight(at::TensorList tensors) {
        if (!at::functorch::functorchTLSAccessor()) return;
        // A view that was written to makes its place in the graph anew when it is asked, and needs the state for it.
        for (const at::Tensor& tensor : tensors) torch::autograd::impl::gradient_edge(tensor);
        state_ = std::move(at::functorch::functorchTLSAccessor());
    }
    FunctorchOutOfSight(const FunctorchOutOfSight&) = delete;
    FunctorchOutOfSight& operator=(const FunctorchOutOfSight&) = delete;
    ~FunctorchOutOfSight() { end(); }

    void end() {
        if (state_) at::functorch::functorchTLSAccessor() = std::move(state_);
    }

  private:
    std::unique_ptr<at::functorch::FuncTorchTLSBase> state_;
};

// Where an argument's elements are among the tensors that autograd is given: all but those that are not there.
struct Place {
    bool is_list;
    std::vector<bool> is_there;
};

// The names under which a context keeps what is no tensor. What is saved is kept under its number in `saves`.
constexpr const char* gradient_key = "gradient";
constexpr const char* places_key = "places";    // only where an argument is not one tensor that is there
constexpr const char* results_key = "results";  // only where a result is undefined

// The namespace in which loader/gradient.py registers references, each under "<namespace>__<name>".
const char* const composites = "opwright_composite::";

bool holds_a_list(const c10::IValue& value) {
    return value.isTensorList() || value.isOptionalTensorList();
}

// Calls `act` with each element of a tensor argument; with an undefined tensor in place of a None.
template <class Act>
void for_each_tensor(const c10::IValue& value, Act&& act) {
    if (value.isTensor()) {
        act(value.toTensor());
    } else if (value.isList()) {
        for (const c10::IValue& element : value.toListRef())
            act(element.isTensor() ? element.toTensor() : at::Tensor());
    } else {
        act(at::Tensor());
    }
}

// As many numbers: for each argument whether it is a list, how many elements it has, and which of them are there.
std::vector<std::int64_t> packed(const std::vector<Place>& places) {
    std::vector<std::int64_t> numbers;
    for (const Place& place : places) {
        numbers.push_back(place.is_list ? 1 : 0);
        numbers.push_back(static_cast<std::int64_t>(place.is_there.size()));
        for (const bool there : place.is_there) numbers.push_back(there ? 1 : 0);
    }
    return numbers;
}

std::vector<Place> unpacked(const std::vector<std::int64_t>& numbers) {
    std::vector<Place> places;
    for (auto at = numbers.begin(); at != numbers.end();) {
        Place& place = places.emplace_back();
        place.is_list = *at++ != 0;
        const auto count = *at++;
        place.is_there.assign(at, at + count);
        at += count;
    }
    return places;
}

struct Call {
    Gradient& gradient;
    const c10::OperatorHandle& op;
    c10::DispatchKeySet keys;
    Stack& stack;
    const std::vector<Place>& places;  // empty where each argument is one tensor that is there
    FunctorchOutOfSight functorch;
};

struct Bridge : torch::autograd::Function<Bridge> {
    static variable_list forward(AutogradContext* context, at::TensorList, Call& call) {
        call.functorch.end();
        const Gradient& gradient = call.gradient;
        const std::size_t results = call.op.schema().returns().size();
        const std::size_t base = call.stack.size() - call.op.schema().arguments().size();
        variable_list saved;
        saved.reserve(gradient.saves.size());
        for (std::size_t at = 0; at < gradient.saves.size(); ++at) {
            if (!gradient.saves[at].is_result) save(*context, at, call.stack[base + gradient.saves[at].index], saved);
        }
        {
            const at::AutoDispatchBelowADInplaceOrView guard;
            // `apply` has switched it off. Gradients of outer transformations are recorded further down.
            const c10::AutoGradMode grad_mode(is_in_a_transformation());
            call.op.redispatchBoxed(call.keys & c10::after_autograd_keyset, &call.stack);
        }
        variable_list outputs;
        outputs.reserve(results);
        for (std::size_t at = 0; at < results; ++at) {
            const at::Tensor& result = call.stack[base + at].toTensor();
            if (result.defined()) outputs.push_back(result);
        }
        for (const Saved& save : gradient.saves) {
            if (save.is_result) saved.push_back(call.stack[base + save.index].toTensor());
        }
        if (outputs.size() < results) {
            std::vector<bool> is_there;
            for (std::size_t at = 0; at < results; ++at) is_there.push_back(call.stack[base + at].toTensor().defined());
            context->saved_data[results_key] = packed({{true, is_there}});
        }
        context->save_for_backward(std::move(saved));
        context->saved_data[gradient_key] = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(&gradient));
        if (!call.places.empty()) context->saved_data[places_key] = packed(call.places);
        context->set_materialize_grads(false);
        return outputs;
    }

    static variable_list backward(AutogradContext* context, const variable_list& incoming) {
        auto& gradient = *reinterpret_cast<Gradient*>(
            static_cast<std::intptr_t>(context->saved_data.find(gradient_key)->second.toInt()));
        const std::vector<Place> places = places_of(*context, gradient);
        bool flows = false;
        for (const at::Tensor& grad : incoming) flows |= grad.defined();
        if (!flows) return in_order({}, places, gradient);
        const c10::OperatorHandle& op = gradient.handle();
        const auto& parameters = op.schema().arguments();
        const variable_list saved = context->get_saved_variables();
        Stack stack;
        stack.reserve(parameters.size());
        push_incoming(*context, incoming, stack);
        push_saved(*context, gradient, saved, parameters, stack);
        if (gradient.says_wanted) stack.emplace_back(wanted(*context, places));
        call(op, stack);
        return in_order(stack, places, gradient);
    }

  private:
    // A list keeps its length in the context, and its tensors among the saved ones; a tensor is just saved.
    static void save(AutogradContext& context, std::size_t at, const c10::IValue& value, variable_list& tensors) {
        if (value.isTensor()) {
            tensors.push_back(value.toTensor());
        } else if (holds_a_list(value)) {
            for_each_tensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
            context.saved_data[std::to_string(at)] = static_cast<std::int64_t>(value.toListRef().size());
        } else {
            context.saved_data[std::to_string(at)] = value;
        }
    }

    // None stands for the gradient of a result that nobody used, which the operator takes for zero.
    static void push_incoming(const AutogradContext& context, const variable_list& incoming, Stack& stack) {
        std::vector<bool> is_there(incoming.size(), true);
        const auto kept = context.saved_data.find(results_key);
        if (kept != context.saved_data.end()) is_there = unpacked(kept->second.toIntVector()).at(0).is_there;
        std::size_t next = 0;
        for (const bool there : is_there) {
            const at::Tensor grad = there ? incoming.at(next++) : at::Tensor();
            stack.push_back(grad.defined() ? c10::IValue(grad) : c10::IValue());
        }
    }

    static void push_saved(const AutogradContext& context, const Gradient& gradient, const variable_list& saved,
                           const std::vector<c10::Argument>& parameters, Stack& stack) {
        // Arguments were saved before the forward ran, results after it.
        std::size_t of_results = saved.size();
        for (const Saved& save : gradient.saves) of_results -= save.is_result ? 1 : 0;
        std::size_t of_arguments = 0;
        const bool only_tensors = context.saved_data.size() == 1;
        for (std::size_t at = 0; at < gradient.saves.size(); ++at) {
            if (gradient.saves[at].is_result) {
                stack.emplace_back(saved[of_results++]);
                continue;
            }
            const auto kept = only_tensors ? context.saved_data.end() : context.saved_data.find(std::to_string(at));
            if (kept == context.saved_data.end()) {
                stack.emplace_back(saved[of_arguments++]);
                continue;
            }
            const c10::TypePtr& type = parameters[stack.size()].type();
            if (type->kind() == c10::ListType::Kind && kept->second.isInt()) {
                const auto length = static_cast<std::size_t>(kept->second.toInt());
                stack.push_back(list_of(type->expectRef<c10::ListType>().getElementType(),
                                        at::TensorList(saved).slice(of_arguments, length)));
                of_arguments += length;
            } else {
                stack.push_back(kept->second);
            }
        }
    }

    static void call(const c10::OperatorHandle& op, Stack& stack) {
        if (c10::GradMode::is_enabled() || is_in_a_transformation()) {
            op.callBoxed(&stack);  // the backward is to have a gradient itself
        } else {
            const at::AutoDispatchBelowADInplaceOrView guard;
            op.callBoxed(&stack);
        }
    }

    static c10::IValue list_of(const c10::TypePtr& element, at::TensorList tensors) {
        c10::impl::GenericList list(element);
        list.reserve(tensors.size());
        for (const at::Tensor& tensor : tensors) list.push_back(tensor.defined() ? c10::IValue(tensor) : c10::IValue());
        return list;
    }

    static std::vector<Place> places_of(const AutogradContext& context, const Gradient& gradient) {
        const auto kept = context.saved_data.find(places_key);
        if (kept != context.saved_data.end()) return unpacked(kept->second.toIntVector());
        return {gradient.differentiable.size(), Place{false, {true}}};
    }

    // An argument's gradient is wanted when that of one of its tensors is.
    static c10::List<bool> wanted(const AutogradContext& context, const std::vector<Place>& places) {
        c10::List<bool> flags;
        flags.reserve(places.size());
        std::size_t edge = 0;
        for (const Place& place : places) {
            bool any = false;
            for (const bool there : place.is_there) any |= there && context.needs_input_grad(edge++);
            flags.push_back(any);
        }
        return flags;
    }

    // The results of the backward operator as one gradient for each tensor that `apply` was given, and none for the
    // call, which was its last argument.
    static variable_list in_order(const Stack& results, const std::vector<Place>& places, const Gradient& gradient) {
        variable_list grads;
        grads.reserve(places.size() + 1);
        for (std::size_t at = 0; at < places.size(); ++at) {
            const std::vector<bool>& is_there = places[at].is_there;
            std::size_t element = 0;
            if (at < results.size() && (!places[at].is_list || !results[at].toListRef().empty())) {
                const std::size_t given = places[at].is_list ? results[at].toListRef().size() : 1;
                TORCH_CHECK(given == is_there.size(), gradient.backward, " gave ", given, " gradients for argument ",
                            gradient.differentiable[at], " of ", gradient.forward, ", a list of ", is_there.size(),
                            ": give one for each element, or an empty list for none");
                for_each_tensor(results[at], [&](const at::Tensor& grad) {
                    TORCH_CHECK(grad.defined() || !places[at].is_list, gradient.backward,
                                " gave an undefined tensor in a list, which Python cannot hold: give zeros, or an "
                                "empty list where none is wanted");
                    if (is_there[element++]) grads.push_back(grad);
                });
            } else {
                for (const bool there : is_there)
                    if (there) grads.emplace_back();
            }
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
        c10::SmallVector<at::Tensor, 4> tensors;
        bool is_needed = false;
        bool is_simple = true;
        bool has_tangent = false;
        for (const std::size_t index : gradient_.differentiable) {
            const c10::IValue& argument = (*stack)[base + index];
            is_simple &= argument.isTensor() && argument.toTensor().defined();
            for_each_tensor(argument, [&](const at::Tensor& tensor) {
                if (!tensor.defined()) return;
                has_tangent |= tensor._fw_grad(/*level=*/0).defined();
                is_needed |= tensor.requires_grad();
                tensors.push_back(tensor);
            });
        }
        if (has_tangent) return call_composite(stack);
        if (!is_needed || !c10::GradMode::is_enabled()) {
            const at::AutoDispatchBelowADInplaceOrView guard;
            op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
            return;
        }
        std::vector<Place> places;
        if (!is_simple) places = places_in(*stack, base);
        Call call{gradient_, op, keys, *stack, places, FunctorchOutOfSight(tensors)};
        const variable_list outputs = Bridge::apply(at::TensorList(tensors), call);
        auto output = outputs.begin();
        for (std::size_t at = base; at < stack->size(); ++at) {
            if ((*stack)[at].toTensor().defined()) (*stack)[at] = *output++;
        }
    }

  private:
    std::vector<Place> places_in(const Stack& stack, std::size_t base) const {
        std::vector<Place> places;
        for (const std::size_t index : gradient_.differentiable) {
            const c10::IValue& argument = stack[base + index];
            Place& place = places.emplace_back(Place{holds_a_list(argument), {}});
            for_each_tensor(argument, [&](const at::Tensor& tensor) { place.is_there.push_back(tensor.defined()); });
        }
        return places;
    }

    // In forward mode the operator is what its reference is composed of, which Python has registered for that.
    void call_composite(Stack* stack) const {
        std::string name = gradient_.forward;
        const auto composite =
            c10::Dispatcher::singleton().findSchema({composites + name.replace(name.find("::"), 2, "__"), ""});
        // PyTorch would go on without the derivative, as if it were zero.
        TORCH_CHECK_NOT_IMPLEMENTED(composite.has_value(), gradient_.forward,
                                    " has no forward-mode derivative in a process without Python: use reverse mode");
        composite->callBoxed(stack);
    }

    Gradient& gradient_;
};

std::vector<std::string> split(const std::string& text, char by) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
    return parts;
}

std::unique_ptr<Gradient> read_line(const std::string& line) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() != 5 || words[0].find("::") == std::string::npos)
        throw std::runtime_error("the gradient \"" + line + "\" cannot be read: build the library again");
    auto gradient = std::make_unique<Gradient>();
    gradient->forward = words[0];
    gradient->backward = words[1];
    for (const std::string& index : split(words[2], ',')) gradient->differentiable.push_back(std::stoul(index));
    if (words[3] != "-") {
        for (const std::string& saved : split(words[3], ',')) {
            const bool is_result = saved.starts_with('r');
            gradient->saves.push_back({is_result, std::stoul(saved.substr(is_result ? 1 : 0))});
        }
    }
    gradient->says_wanted = words[4] == "1";
    return gradient;
}

using GradientsText = const char*();

// The lines of `opwright_gradients()` of every shared object in this process.
std::set<std::string> lines_in_process() {
    std::vector<std::string> names;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* into) {
            static_cast<std::vector<std::string>*>(into)->emplace_back(info->dlpi_name);
            return 0;
        },
        &names);
    std::set<std::string> lines;
    for (const std::string& name : names) {
        void* object = dlopen(name.empty() ? nullptr : name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (object == nullptr) continue;
        if (auto* text = reinterpret_cast<GradientsText*>(dlsym(object, "opwright_gradients")))
            for (std::string& line : split(text(), '\n')) lines.insert(std::move(line));
        dlclose(object);
    }
    return lines;
}

// The registrations that hold, by the line that each was made from. Never destroyed: PyTorch may be gone by then.
std::map<std::string, std::unique_ptr<torch::Library>>& attached() {
    static auto* const all = new std::map<std::string, std::unique_ptr<torch::Library>>();
    return *all;
}

void attach(const std::string& line) {
    Gradient& gradient = *read_line(line).release();
    // A new build of a library may say something else of the same operator.
    std::erase_if(attached(), [&](const auto& entry) { return entry.first.starts_with(gradient.forward + ' '); });
    const std::size_t colons = gradient.forward.find("::");
    auto library = std::make_unique<torch::Library>(torch::Library::IMPL, gradient.forward.substr(0, colons),
                                                    c10::DispatchKey::Autograd, __FILE__, __LINE__);
    library->impl(gradient.forward.substr(colons + 2).c_str(),
                  torch::CppFunction::makeFromBoxedFunctor(std::make_unique<AutogradKernel>(gradient)));
    attached().emplace(line, std::move(library));
}

}  // namespace

// Gives autograd to the operators of every library that was loaded since the last call. Null when all is well, else one
// line that says what is not.
extern "C" __attribute__((visibility("default"))) const char* opwright_attach_gradients() {
    static std::mutex mutex;
    static auto* const error = new std::string();
    const std::lock_guard lock(mutex);
    try {
        for (const std::string& line : lines_in_process()) {
            if (!attached().contains(line)) attach(line);
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

// Implements C++ autograd for every operator with a native backward.
//
// The text that an operator library returns from `opwright_gradients()` names the operator that computes another one's
// gradient, and what it needs from the forward call. This file, compiled once for each PyTorch, reads the text from
// every library in the process and registers one boxed kernel for the Autograd key of each such operator. Only this
// file needs PyTorch's unstable C++ autograd interface; operator libraries do not.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <c10/util/SmallVector.h>
#include <torch/library.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "argument_layout.h"
#include "function.h"
#include "python_gradient.h"
#include "table.h"
#include "version_counter.h"

namespace opwright::autograd {
namespace {

// The namespace in which loader/gradient.py registers references, each under "<namespace>__<name>".
const char* const composites = "opwright_composite::";
// The namespace in which it likewise registers the kernels that record gradients.
const std::string recordings = "opwright_recorded::";

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
        std::vector<ArgumentLayout> layouts;
        if (!is_simple) layouts = layouts_of(op.schema().arguments(), *stack, base);
        Call call{gradient_, *gradient_.forward, keys, *stack, layouts, SuspendedFunctorch(tensors)};
        const variable_list outputs = Bridge::apply(at::TensorList(tensors), call);
        // A training form also returns what it saves for its backward, which the graph has stored by now.
        torch::jit::drop(*stack, stack->size() - base - op.schema().returns().size());
        auto output = outputs.begin();
        for (std::size_t at = base; at < stack->size(); ++at) {
            if ((*stack)[at].toTensor().defined()) (*stack)[at] = *output++;
        }
    }

  private:
    std::vector<ArgumentLayout> layouts_of(const std::vector<c10::Argument>& arguments, const Stack& stack,
                                           std::size_t base) const {
        std::vector<ArgumentLayout> layouts;
        for (const std::size_t index : gradient_.differentiable) {
            ArgumentLayout& layout = layouts.emplace_back(ArgumentLayout{is_list_of_tensors(arguments[index]), {}});
            for_each_tensor(stack[base + index],
                            [&](const at::Tensor& tensor) { layout.defined.push_back(tensor.defined()); });
        }
        return layouts;
    }

    // In forward mode, runs the operator as its composite reference, which Python registered for this purpose.
    void call_composite(Stack* stack) const {
        std::string name = gradient_.op;
        const auto composite =
            c10::Dispatcher::singleton().findSchema({composites + name.replace(name.find("::"), 2, "__"), ""});
        // Without this, PyTorch would continue as if the derivative were zero.
        TORCH_CHECK_NOT_IMPLEMENTED(composite.has_value(), gradient_.op,
                                    " has no forward-mode derivative in a process without Python: use reverse mode");
        composite->callBoxed(stack);
    }

    Gradient& gradient_;
};

// The current registrations, keyed by the line that describes each. Never destroyed: PyTorch may be destroyed first.
std::map<std::string, std::unique_ptr<torch::Library>>& attached() {
    static auto* const all = new std::map<std::string, std::unique_ptr<torch::Library>>();
    return *all;
}

// Every gradient that graphs may refer to. Never destroyed, because graphs may live as long as the process.
std::vector<Gradient*>& gradients() {
    static auto* const all = new std::vector<Gradient*>();
    return *all;
}

// Whether `name`, an operator or a line that starts with one, is in the namespace.
bool is_in(const std::string& name, const std::string& space) {
    return name.starts_with(space + "::");
}

void detach(const std::string& space) {
    std::erase_if(attached(), [&](const auto& entry) { return is_in(entry.first, space); });
    for (Gradient* gradient : gradients())
        if (is_in(gradient->op, space)) gradient->is_replaced = true;
}

void attach(const std::string& line) {
    std::unique_ptr<Gradient> gradient = parse_gradient(line);
    const std::string op_name = gradient->op;
    gradient->fits = what_fits(line, *gradient);
    for (Gradient* earlier : gradients())
        if (!earlier->fits.empty() && earlier->fits == gradient->fits) earlier->is_replaced = false;
    // A new build of a library may describe the same operator differently.
    std::erase_if(attached(), [&](const auto& entry) { return entry.first.starts_with(op_name + ' '); });
    std::unique_ptr<torch::Library>& kept = attached()[line];
    const auto op = c10::Dispatcher::singleton().findSchema({op_name, ""});
    // A process may have two bridges: one linked into the program, and Python's.
    if (op.has_value() && op->hasKernelForDispatchKey(c10::DispatchKey::Autograd)) return;
    const std::size_t colons = op_name.find("::");
    kept = std::make_unique<torch::Library>(torch::Library::IMPL, op_name.substr(0, colons), c10::DispatchKey::Autograd,
                                            __FILE__, __LINE__);
    gradients().push_back(gradient.get());
    kept->impl(op_name.substr(colons + 2).c_str(),
               torch::CppFunction::makeFromBoxedFunctor(std::make_unique<AutogradKernel>(*gradient.release())));
}

// Parses "mine::scale 0,2", the operator and the arguments for which its Python kernel is called, or
// "mine::scale_ 0 mutates", where it mutates these arguments.
void attach_python(const std::string& line) {
    const std::vector<std::string> words = split(line, ' ');
    const std::string& op_name = words.at(0);
    const std::size_t colons = op_name.find("::");
    const std::string space = op_name.substr(0, colons);
    const std::string name = op_name.substr(colons + 2);
    std::vector<std::size_t> arguments;
    for (const std::string& index : split(words.at(1), ',')) arguments.push_back(std::stoul(index));
    const auto recorded =
        c10::Dispatcher::singleton().findSchemaOrThrow((recordings + space + "__" + name).c_str(), "");
    const auto implement = [&](c10::DispatchKey key, auto kernel) {
        auto library = std::make_unique<torch::Library>(torch::Library::IMPL, space, key, __FILE__, __LINE__);
        library->impl(name.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::move(kernel)));
        attached()[line + ' ' + c10::toString(key)] = std::move(library);
    };
    implement(c10::DispatchKey::Autograd, std::make_unique<PythonGradient>(recorded, arguments));
    if (words.size() > 2) {
        implement(c10::DispatchKey::ADInplaceOrView, std::make_unique<VersionCounter>(std::move(arguments)));
    }
}

// Gradients may be attached from several threads.
std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
}

}  // namespace
}  // namespace opwright::autograd

// Registers gradients for the operators of every library loaded since the last call. Returns null, or one line that
// describes a failure; even then, all other operators have their gradients.
extern "C" __attribute__((visibility("default"))) const char* opwright_attach_gradients() {
    using namespace opwright::autograd;
    static auto* const error = new std::string();
    const std::lock_guard lock(mutex());
    error->clear();
    for (const std::string& line : gradient_lines_in_process()) {
        try {
            if (!attached().contains(line)) attach(line);
        } catch (const std::exception& problem) {
            *error = problem.what();
        }
    }
    return error->empty() ? nullptr : error->c_str();
}

// Unregisters the gradients of a namespace's operators before a new build replaces its library. Graphs recorded until
// then can run their backward if the new build's gradient fits.
extern "C" __attribute__((visibility("default"))) void opwright_detach(const char* space) {
    using namespace opwright::autograd;
    const std::lock_guard lock(mutex());
    detach(space);
}

// Makes an operator call its Python kernel for autograd only if there is something to record or reject. Returns null or
// an error, as above.
extern "C" __attribute__((visibility("default"))) const char* opwright_attach_python(const char* line) {
    using namespace opwright::autograd;
    static auto* const error = new std::string();
    const std::lock_guard lock(mutex());
    try {
        attach_python(line);
    } catch (const std::exception& problem) {
        *error = problem.what();
        return error->c_str();
    }
    return nullptr;
}

__attribute__((constructor)) static void attach_on_load() {
    if (const char* error = opwright_attach_gradients()) std::fprintf(stderr, "opwright: %s\n", error);
}

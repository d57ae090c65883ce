// The graph node of a call: what it saves in the forward, and how it calls the backward operator.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "argument_layout.h"
#include "functorch.h"
#include "table.h"

namespace opwright::autograd {

using ::torch::autograd::AutogradContext;
using ::torch::autograd::variable_list;
using ::torch::jit::Stack;

// The keys under which a context stores non-tensors. A saved value is stored under its index in `saves`.
constexpr const char* gradient_key = "gradient";
constexpr const char* layouts_key = "layouts";  // only if an argument is not one defined tensor
constexpr const char* results_key = "results";  // only if a result is undefined

struct Call {
    Gradient& gradient;
    const c10::OperatorHandle& op;
    c10::DispatchKeySet keys;
    Stack& stack;
    const std::vector<ArgumentLayout>& layouts;  // empty if each argument is one defined tensor
    SuspendedFunctorch functorch;
};

struct Bridge : ::torch::autograd::Function<Bridge> {
    static variable_list forward(AutogradContext* context, at::TensorList, Call& call) {
        call.functorch.resume();
        const Gradient& gradient = call.gradient;
        const std::size_t results = call.op.schema().returns().size();
        const std::vector<c10::Argument>& arguments = call.op.schema().arguments();
        const std::size_t base = call.stack.size() - arguments.size();
        variable_list saved;
        saved.reserve(gradient.saves.size());
        for (std::size_t at = 0; at < gradient.saves.size(); ++at) {
            const std::size_t index = gradient.saves[at].index;
            if (!gradient.saves[at].is_result) save(*context, at, arguments[index], call.stack[base + index], saved);
        }
        {
            const at::AutoDispatchBelowADInplaceOrView guard;
            // `apply` disabled it. Gradients of outer transformations are recorded below the Autograd key.
            const c10::AutoGradMode grad_mode(is_in_functorch_transform());
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
            std::vector<bool> defined;
            for (std::size_t at = 0; at < results; ++at) defined.push_back(call.stack[base + at].toTensor().defined());
            context->saved_data[results_key] = pack({{true, defined}});
        }
        context->save_for_backward(std::move(saved));
        context->saved_data[gradient_key] = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(&gradient));
        if (!call.layouts.empty()) context->saved_data[layouts_key] = pack(call.layouts);
        context->set_materialize_grads(false);
        return outputs;
    }

    static variable_list backward(AutogradContext* context, const variable_list& incoming) {
        auto& gradient =
            *reinterpret_cast<Gradient*>(static_cast<std::intptr_t>(context->saved_data.at(gradient_key).toInt()));
        TORCH_CHECK(!gradient.is_replaced, gradient.op,
                    " was reloaded with a different schema or gradient after this graph was recorded, so the graph "
                    "cannot call the new backward: run the forward again");
        const c10::IValue* kept = find(*context, layouts_key);
        const std::vector<ArgumentLayout> kept_layouts =
            kept ? unpack(kept->toIntVector()) : std::vector<ArgumentLayout>();
        const std::vector<ArgumentLayout>& layouts = kept ? kept_layouts : gradient.simple_layouts;
        bool flows = false;
        for (const at::Tensor& grad : incoming) flows |= grad.defined();
        if (!flows) return grads_per_tensor({}, layouts, gradient);
        const c10::OperatorHandle& op = *gradient.backward;
        const auto& parameters = op.schema().arguments();
        const variable_list saved = context->get_saved_variables();
        Stack stack;
        stack.reserve(parameters.size());
        push_incoming(*context, incoming, stack);
        push_saved(*context, gradient, saved, parameters, stack);
        if (gradient.takes_needs_grad) stack.emplace_back(needs_grad(*context, layouts));
        call(op, stack);
        return grads_per_tensor(stack, layouts, gradient);
    }

  private:
    static const c10::IValue* find(const AutogradContext& context, const std::string& key) {
        // Usually the context contains only the gradient itself.
        const auto found = context.saved_data.size() == 1 ? context.saved_data.end() : context.saved_data.find(key);
        return found == context.saved_data.end() ? nullptr : &found->second;
    }

    // Saves a tensor directly, or the tensors of a list with its length in the context.
    static void save(AutogradContext& context, std::size_t at, const c10::Argument& argument, const c10::IValue& value,
                     variable_list& tensors) {
        if (value.isTensor()) {
            tensors.push_back(value.toTensor());
        } else if (is_list_of_tensors(argument)) {
            for_each_tensor(value, [&](const at::Tensor& tensor) { tensors.push_back(tensor); });
            context.saved_data[std::to_string(at)] = static_cast<std::int64_t>(value.toListRef().size());
        } else {
            context.saved_data[std::to_string(at)] = value;
        }
    }

    // The gradient of an unused result is None; the operator treats it as zero.
    static void push_incoming(const AutogradContext& context, const variable_list& incoming, Stack& stack) {
        const auto push = [&](const at::Tensor& grad) {
            stack.push_back(grad.defined() ? c10::IValue(grad) : c10::IValue());
        };
        const c10::IValue* kept = find(context, results_key);
        if (kept == nullptr) {
            for (const at::Tensor& grad : incoming) push(grad);
            return;
        }
        auto next = incoming.begin();
        for (const bool is_defined : unpack(kept->toIntVector()).at(0).defined)
            push(is_defined ? *next++ : at::Tensor());
    }

    static void push_saved(const AutogradContext& context, const Gradient& gradient, const variable_list& saved,
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
            const c10::IValue* kept = find(context, std::to_string(at));
            if (kept == nullptr) {
                stack.emplace_back(saved[of_arguments++]);
                continue;
            }
            const auto* list = parameters[stack.size()].type()->castRaw<c10::ListType>();
            if (list != nullptr && kept->isInt()) {
                const auto length = static_cast<std::size_t>(kept->toInt());
                stack.push_back(list_of(list->getElementType(), at::TensorList(saved).slice(of_arguments, length)));
                of_arguments += length;
            } else {
                stack.push_back(*kept);
            }
        }
    }

    static void call(const c10::OperatorHandle& op, Stack& stack) {
        if (c10::GradMode::is_enabled() || is_in_functorch_transform()) {
            op.callBoxed(&stack);  // so that the backward itself is differentiable
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

    // An argument needs a gradient if any of its tensors does.
    static c10::List<bool> needs_grad(const AutogradContext& context, const std::vector<ArgumentLayout>& layouts) {
        c10::List<bool> flags;
        flags.reserve(layouts.size());
        std::size_t edge = 0;
        for (const ArgumentLayout& layout : layouts) {
            bool any = false;
            for (const bool is_defined : layout.defined) any |= is_defined && context.needs_input_grad(edge++);
            flags.push_back(any);
        }
        return flags;
    }

    // Returns the results of the backward operator as one gradient for each tensor argument of `apply`, and none for
    // its last argument, the call.
    static variable_list grads_per_tensor(const Stack& results, const std::vector<ArgumentLayout>& layouts,
                                          const Gradient& gradient) {
        variable_list grads;
        grads.reserve(layouts.size() + 1);
        for (std::size_t at = 0; at < layouts.size(); ++at) {
            const std::vector<bool>& defined = layouts[at].defined;
            std::size_t element = 0;
            if (at < results.size() && (!layouts[at].is_list || !results[at].toListRef().empty())) {
                const std::size_t given = layouts[at].is_list ? results[at].toListRef().size() : 1;
                TORCH_CHECK(given == defined.size(), gradient.backward.name, " returned ", given,
                            " gradients for argument ", gradient.differentiable[at], " of ", gradient.op,
                            ", a list of ", defined.size(), ": return one per element, or an empty list for none");
                for_each_tensor(results[at], [&](const at::Tensor& grad) {
                    TORCH_CHECK(grad.defined() || !layouts[at].is_list, gradient.backward.name,
                                " returned an undefined tensor in a list, which Python does not support: return "
                                "zeros, or an empty list if none is needed");
                    if (defined[element++]) grads.push_back(grad);
                });
            } else {
                for (const bool is_defined : defined)
                    if (is_defined) grads.emplace_back();
            }
        }
        grads.emplace_back();
        return grads;
    }
};

}  // namespace opwright::autograd

#include "gradients.h"

#include <ATen/ops/linspace.h>
#include <torch/csrc/autograd/autograd.h>

#include "exchange.h"

namespace opwright::probe {

std::vector<c10::IValue> gradients(const std::vector<c10::IValue>& outputs, const std::vector<c10::IValue>& arguments) {
    std::vector<at::Tensor> inputs;
    for (const c10::IValue& argument : arguments)
        for (const c10::IValue& value : flatten(argument))
            if (value.isTensor() && value.toTensor().requires_grad()) inputs.push_back(value.toTensor());
    std::vector<at::Tensor> differentiable, ramps;
    for (const c10::IValue& output : outputs) {
        if (!output.isTensor() || !output.toTensor().requires_grad()) continue;
        const at::Tensor& tensor = output.toTensor();
        if (!tensor.is_floating_point()) continue;
        differentiable.push_back(tensor);
        ramps.push_back(at::linspace(0.5, 1.5, tensor.numel(), tensor.options()).reshape(tensor.sizes()));
    }
    if (inputs.empty() || differentiable.empty()) return std::vector<c10::IValue>(inputs.size());
    std::vector<c10::IValue> found;
    for (const at::Tensor& gradient : torch::autograd::grad(differentiable, inputs, ramps, std::nullopt, false, true))
        found.push_back(gradient.defined() ? c10::IValue(gradient) : c10::IValue());
    return found;
}

}  // namespace opwright::probe

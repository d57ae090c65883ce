// The cell as ATen calls: it runs on every device that PyTorch supports, one kernel after the other.
#include "lltm.h"

#include <torch/extension.h>

#include <cstdint>

namespace {

// The three parts of the concatenated (B, 3H): views that share its memory.
struct Gates {
    explicit Gates(const at::Tensor& all) : input(part(all, 0)), output(part(all, 1)), candidate(part(all, 2)) {}

    at::Tensor input;
    at::Tensor output;
    at::Tensor candidate;

  private:
    static at::Tensor part(const at::Tensor& all, int64_t number) {
        const int64_t state = all.size(1) / 3;
        return all.narrow(/*dim=*/1, number * state, state);
    }
};

lltm::Step forward(const at::Tensor& input, const at::Tensor& weights, const at::Tensor& bias, const at::Tensor& old_h,
                   const at::Tensor& old_cell) {
    lltm::check_forward(input, weights, bias, old_h, old_cell);
    const lltm::AutocastOff autocast_off;
    const at::Tensor joined = at::cat({old_h, input}, /*dim=*/1);
    const at::Tensor all = at::addmm(bias, joined, weights.t());
    // In place: the backward needs only the output of each activation.
    Gates gates(all);
    gates.input.sigmoid_();
    gates.output.sigmoid_();
    at::elu_(gates.candidate);
    const at::Tensor new_cell = at::addcmul(old_cell, gates.candidate, gates.input);
    const at::Tensor new_h = at::tanh(new_cell) * gates.output;
    return {new_h, new_cell, all, joined};
}

lltm::Gradients backward(const at::Tensor& grad_h, const at::Tensor& grad_cell, const at::Tensor& new_cell,
                         const at::Tensor& gates, const at::Tensor& joined, const at::Tensor& weights,
                         const lltm::Wanted& wanted) {
    lltm::check_backward(grad_h, grad_cell, new_cell, gates, joined, weights);
    const lltm::AutocastOff autocast_off;
    const Gates saved(gates);
    const at::Tensor tanh_cell = at::tanh(new_cell);
    const at::Tensor d_cell = at::tanh_backward(grad_h * saved.output, tanh_cell) + grad_cell;
    const at::Tensor d_all = at::empty_like(gates);
    Gates d_gates(d_all);
    at::sigmoid_backward_out(d_gates.input, d_cell * saved.candidate, saved.input);
    at::sigmoid_backward_out(d_gates.output, grad_h * tanh_cell, saved.output);
    at::elu_backward_out(d_gates.candidate, d_cell * saved.input, /*alpha=*/1, /*scale=*/1, /*input_scale=*/1,
                         /*is_result=*/true, saved.candidate);
    return lltm::products(d_all, d_cell, joined, weights, wanted);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.doc() = "One step of a long-long-term-memory cell, composed of ATen's operators, and its gradients.";
    lltm::bind(m, forward, backward);
}

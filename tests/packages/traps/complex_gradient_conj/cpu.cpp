// Products of complex numbers, and the gradients.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

struct Complex {
    float real;
    float imaginary;
};

Complex product(const Complex& a, const Complex& b) {
    return {static_cast<float>(double{a.real} * b.real - double{a.imaginary} * b.imaginary),
            static_cast<float>(double{a.real} * b.imaginary + double{a.imaginary} * b.real)};
}

#ifdef FAULTY
Complex conjugate(const Complex& a) {
    return a;
}
#else
Complex conjugate(const Complex& a) {
    return {a.real, -a.imaginary};
}
#endif

const Complex* numbers_of(const Tensor& tensor) {
    return static_cast<const Complex*>(tensor.const_data_ptr());
}

void check_like(const Tensor& tensor, const char* name, const Tensor& x) {
    check::device(tensor, name, DeviceType::CPU);
    check::dtype(tensor, name, ScalarType::ComplexFloat);
    check::same_sizes(tensor, name, x, "x");
}

Tensor rotate(const Tensor& x, const Tensor& turn) {
    check_like(x, "x", x);
    check_like(turn, "turn", x);
    const Tensor left = torch::stable::contiguous(x);
    const Tensor right = torch::stable::contiguous(turn);
    Tensor result = torch::stable::empty_like(left);
    const Complex* a = numbers_of(left);
    const Complex* b = numbers_of(right);
    auto* into = static_cast<Complex*>(result.mutable_data_ptr());
    for (int64_t i = 0; i < left.numel(); ++i) into[i] = product(a[i], b[i]);
    return result;
}

// The gradient of `argument`, which is multiplied by `other`.
Tensor gradient_of(const Tensor& grad, const Tensor& other, const Tensor& argument) {
    const Tensor others = torch::stable::contiguous(other);
    Tensor dense = torch::stable::empty_like(others);
    const Complex* g = numbers_of(grad);
    const Complex* b = numbers_of(others);
    auto* into = static_cast<Complex*>(dense.mutable_data_ptr());
    for (int64_t i = 0; i < grad.numel(); ++i) into[i] = product(g[i], conjugate(b[i]));
    if (argument.is_contiguous()) return dense;
    Tensor result = torch::stable::empty_like(argument);
    return torch::stable::copy_(result, dense);
}

std::tuple<Tensor, Tensor> rotate_backward(const Tensor& grad, const Tensor& x, const Tensor& turn,
                                           const std::vector<bool>& wanted) {
    check_like(x, "x", x);
    check_like(turn, "turn", x);
    check_like(grad, "grad", x);
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    const Tensor grads = torch::stable::contiguous(grad);
    return {wanted[0] ? gradient_of(grads, turn, x) : Tensor(), wanted[1] ? gradient_of(grads, x, turn) : Tensor()};
}

}  // namespace

OPWRIGHT_IMPL(trap_complex_gradient_conj, CPU, m) {
    m.impl("rotate", OPWRIGHT_FN(rotate));
    m.impl("rotate_backward", OPWRIGHT_FN(rotate_backward));
}

// Simple kernels for float32 and float64, one element at a time.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;
using torch::stable::contiguous;

template <class Element, class F, class... Rest>
Tensor mapped_as(F f, const Tensor& first, const Rest&... rest) {
    Tensor result = torch::stable::empty_like(first);
    auto* into = result.mutable_data_ptr<Element>();
    for (int64_t i = 0; i < first.numel(); ++i) {
        into[i] =
            static_cast<Element>(f(first.const_data_ptr<Element>()[i], rest.template const_data_ptr<Element>()[i]...));
    }
    return result;
}

// Applies `f` to the elements of tensors of the same shape.
template <class F, class... Rest>
Tensor mapped(F f, const Tensor& first, const Rest&... rest) {
    check::dtype(first, "the first tensor", {ScalarType::Float, ScalarType::Double});
    (check::dtype(rest, "another tensor", first.scalar_type()), ...);
    (check::same_sizes(rest, "a tensor", first, "the first one"), ...);
    return first.scalar_type() == ScalarType::Float ? mapped_as<float>(f, contiguous(first), contiguous(rest)...)
                                                    : mapped_as<double>(f, contiguous(first), contiguous(rest)...);
}

Tensor scaled(const Tensor& x, double by) {
    return mapped([by](double a) { return by * a; }, x);
}

Tensor product(const Tensor& x, const Tensor& y) {
    return mapped([](double a, double b) { return a * b; }, x, y);
}

Tensor sum(const Tensor& x, const Tensor& y) {
    return mapped([](double a, double b) { return a + b; }, x, y);
}

Tensor zeros(const Tensor& like) {
    return mapped([](double) { return 0.0; }, like);
}

std::atomic<int64_t> asked{0};

std::tuple<Tensor, Tensor> mul_backward(const Tensor& grad, const Tensor& x, const Tensor& y,
                                        const std::vector<bool>& wanted) {
    asked = int64_t{wanted.at(0)} + 2 * int64_t{wanted.at(1)};
    return {wanted[0] ? product(grad, y) : Tensor(), wanted[1] ? product(grad, x) : Tensor()};
}

int64_t asked_of_mul_backward() {
    return asked.exchange(0);
}

Tensor affine(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias, double alpha,
              const std::string& mode, const std::optional<std::vector<int64_t>>& shift, bool flag,
              std::optional<ScalarType> dtype) {
    double added = 0;
    for (const int64_t one : shift.value_or(std::vector<int64_t>())) added += static_cast<double>(one);
    Tensor result = mapped([=](double a, double b) { return alpha * a * b + added; }, x, weight);
    if (bias) result = sum(result, mode == "plus" ? *bias : scaled(*bias, -1));
    return torch::stable::to(scaled(result, flag ? -1 : 1), dtype.value_or(x.scalar_type()));
}

std::tuple<Tensor, Tensor, Tensor> affine_backward(const Tensor& grad, const Tensor& x, const Tensor& weight,
                                                   const std::optional<Tensor>& bias, double alpha,
                                                   const std::string& mode,
                                                   const std::optional<std::vector<int64_t>>& /*shift*/, bool flag,
                                                   std::optional<ScalarType> /*dtype*/,
                                                   const std::vector<bool>& wanted) {
    const Tensor signed_grad = scaled(torch::stable::to(grad, x.scalar_type()), flag ? -1 : 1);
    OPWRIGHT_CHECK(bias || !wanted.at(2), "the gradient of an absent bias was requested");
    return {wanted[0] ? scaled(product(signed_grad, weight), alpha) : Tensor(),
            wanted[1] ? scaled(product(signed_grad, x), alpha) : Tensor(),
            wanted[2] ? scaled(signed_grad, mode == "plus" ? 1 : -1) : Tensor()};
}

Tensor weighted(const std::vector<Tensor>& terms, const Tensor& like) {
    Tensor result = zeros(like);
    for (std::size_t i = 0; i < terms.size(); ++i) result = sum(result, scaled(terms[i], static_cast<double>(i) + 1));
    return result;
}

Tensor weighted_sum(const std::vector<Tensor>& terms, const Tensor& factor) {
    return product(weighted(terms, factor), factor);
}

std::tuple<std::vector<Tensor>, Tensor> weighted_sum_backward(const Tensor& grad, const std::vector<Tensor>& terms,
                                                              const Tensor& factor, const std::vector<bool>& wanted) {
    std::vector<Tensor> of_terms;
    for (std::size_t i = 0; i < terms.size() && wanted.at(0); ++i)
        of_terms.push_back(scaled(product(grad, factor), static_cast<double>(i) + 1));
    return {of_terms, wanted.at(1) ? product(grad, weighted(terms, factor)) : Tensor()};
}

Tensor sum_of_given(const std::vector<std::optional<Tensor>>& terms, const Tensor& first) {
    Tensor result = scaled(first, 1);
    for (const auto& term : terms)
        if (term) result = sum(result, product(*term, *term));
    return result;
}

std::tuple<std::vector<Tensor>, Tensor> sum_of_given_backward(const Tensor& grad,
                                                              const std::vector<std::optional<Tensor>>& terms,
                                                              const Tensor& /*first*/,
                                                              const std::vector<bool>& wanted) {
    std::vector<Tensor> of_terms;
    for (std::size_t i = 0; i < terms.size() && wanted.at(0); ++i)
        of_terms.push_back(terms[i] ? scaled(product(grad, *terms[i]), 2) : torch::stable::new_empty(grad, {0}));
    return {of_terms, wanted.at(1) ? scaled(grad, 1) : Tensor()};
}

std::tuple<Tensor, Tensor> sin_cos(const Tensor& x) {
    return {mapped([](double a) { return std::sin(a); }, x), mapped([](double a) { return std::cos(a); }, x)};
}

Tensor sin_cos_backward(const std::optional<Tensor>& of_sin, const std::optional<Tensor>& of_cos, const Tensor& x) {
    Tensor grad = zeros(x);
    if (of_sin) grad = sum(grad, mapped([](double g, double a) { return g * std::cos(a); }, *of_sin, x));
    if (of_cos) grad = sum(grad, mapped([](double g, double a) { return -g * std::sin(a); }, *of_cos, x));
    return grad;
}

std::tuple<Tensor, Tensor> largest(const Tensor& x) {
    check::rank(x, "x", {1});
    check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    OPWRIGHT_CHECK(x.numel() > 0, "x must not be empty");
    const Tensor wide = torch::stable::to(contiguous(x), ScalarType::Double);
    int64_t place = 0;
    for (int64_t i = 1; i < wide.numel(); ++i) {
        if (wide.const_data_ptr<double>()[i] > wide.const_data_ptr<double>()[place]) place = i;
    }
    Tensor at = torch::stable::new_empty(x, {}, ScalarType::Long);
    *at.mutable_data_ptr<int64_t>() = place;
    return {torch::stable::clone(torch::stable::select(x, 0, place)), at};
}

Tensor largest_backward(const std::optional<Tensor>& of_value, const std::optional<Tensor>& of_place,
                        const Tensor& place, const Tensor& x) {
    OPWRIGHT_CHECK(!of_place, "an integer result has no gradient");
    Tensor grad = zeros(x);
    if (of_value) {
        Tensor there = torch::stable::select(grad, 0, *place.const_data_ptr<int64_t>());
        torch::stable::copy_(there, *of_value);
    }
    return grad;
}

Tensor sigmoid(const Tensor& x) {
    return mapped([](double a) { return 1 / (1 + std::exp(-a)); }, x);
}

Tensor sigmoid_backward(const Tensor& grad, const Tensor& result) {
    return mapped([](double g, double s) { return g * s * (1 - s); }, grad, result);
}

Tensor rows(const Tensor& table, const Tensor& index) {
    Tensor result = torch::stable::new_empty(table, {index.numel()});
    for (int64_t i = 0; i < index.numel(); ++i) {
        Tensor into = torch::stable::select(result, 0, i);
        torch::stable::copy_(into, torch::stable::select(table, 0, contiguous(index).const_data_ptr<int64_t>()[i]));
    }
    return result;
}

std::tuple<Tensor, Tensor> rows_backward(const Tensor& grad, const Tensor& table, const Tensor& index,
                                         const std::vector<bool>& wanted) {
    OPWRIGHT_CHECK(!wanted.at(1), "the gradient of an integer argument was requested");
    Tensor of_table = zeros(table);
    for (int64_t i = 0; i < index.numel(); ++i) {
        Tensor into = torch::stable::select(of_table, 0, contiguous(index).const_data_ptr<int64_t>()[i]);
        torch::stable::copy_(into, sum(into, torch::stable::select(grad, 0, i)));
    }
    return {of_table, Tensor()};
}

Tensor cube(const Tensor& x, double factor) {
    return mapped([=](double a) { return factor * a * a * a; }, x);
}

Tensor cube_backward(const Tensor& grad, const Tensor& x, double factor) {
    return mapped([=](double g, double a) { return 3 * factor * g * a * a; }, grad, x);
}

std::tuple<Tensor, Tensor> cube_backward_backward(const Tensor& grad, const Tensor& of_cube, const Tensor& x,
                                                  double factor, const std::vector<bool>& wanted) {
    return {wanted.at(0) ? cube_backward(grad, x, factor) : Tensor(),
            wanted.at(1)
                ? mapped([=](double g, double h, double a) { return 6 * factor * g * h * a; }, grad, of_cube, x)
                : Tensor()};
}

Tensor tanh(const Tensor& x) {
    return mapped([](double a) { return std::tanh(a); }, x);
}

Tensor gated(const Tensor& x, const Tensor& y) {
    return product(tanh(x), y);
}

std::atomic<int64_t> made{0};

std::tuple<Tensor, Tensor> gated_with_gate(const Tensor& x, const Tensor& y) {
    ++made;
    const Tensor gate = tanh(x);
    return {product(gate, y), gate};
}

std::tuple<Tensor, Tensor> gated_with_gate_backward(const std::optional<Tensor>& of_result,
                                                    const std::optional<Tensor>& of_gate, const Tensor& y,
                                                    const Tensor& gate, const std::vector<bool>& wanted) {
    Tensor to_gate = of_gate ? scaled(*of_gate, 1) : zeros(y);
    if (of_result) to_gate = sum(to_gate, product(*of_result, y));
    const auto slope = [](double g, double t) { return g * (1 - t * t); };
    return {wanted.at(0) ? mapped(slope, to_gate, gate) : Tensor(),
            wanted.at(1) ? (of_result ? product(*of_result, gate) : zeros(y)) : Tensor()};
}

int64_t gates_made() {
    return made.exchange(0);
}

void add_into(Tensor& x, const Tensor& y) {
    torch::stable::copy_(x, sum(x, y));
}

}  // namespace

OPWRIGHT_IMPL(gradients, CompositeExplicitAutograd, m) {
    m.impl("asked_of_mul_backward", OPWRIGHT_FN(asked_of_mul_backward));
    m.impl("gates_made", OPWRIGHT_FN(gates_made));
}

OPWRIGHT_IMPL(gradients, CPU, m) {
    m.impl("mul", OPWRIGHT_FN(product));
    m.impl("mul_backward", OPWRIGHT_FN(mul_backward));
    m.impl("affine", OPWRIGHT_FN(affine));
    m.impl("affine_backward", OPWRIGHT_FN(affine_backward));
    m.impl("weighted_sum", OPWRIGHT_FN(weighted_sum));
    m.impl("weighted_sum_backward", OPWRIGHT_FN(weighted_sum_backward));
    m.impl("sum_of_given", OPWRIGHT_FN(sum_of_given));
    m.impl("sum_of_given_backward", OPWRIGHT_FN(sum_of_given_backward));
    m.impl("sin_cos", OPWRIGHT_FN(sin_cos));
    m.impl("sin_cos_backward", OPWRIGHT_FN(sin_cos_backward));
    m.impl("largest", OPWRIGHT_FN(largest));
    m.impl("largest_backward", OPWRIGHT_FN(largest_backward));
    m.impl("sigmoid", OPWRIGHT_FN(sigmoid));
    m.impl("sigmoid_backward", OPWRIGHT_FN(sigmoid_backward));
    m.impl("rows", OPWRIGHT_FN(rows));
    m.impl("rows_backward", OPWRIGHT_FN(rows_backward));
    m.impl("cube", OPWRIGHT_FN(cube));
    m.impl("cube_backward", OPWRIGHT_FN(cube_backward));
    m.impl("cube_backward_backward", OPWRIGHT_FN(cube_backward_backward));
    m.impl("gated", OPWRIGHT_FN(gated));
    m.impl("gated_with_gate", OPWRIGHT_FN(gated_with_gate));
    m.impl("gated_with_gate_backward", OPWRIGHT_FN(gated_with_gate_backward));
    m.impl("add_into", OPWRIGHT_FN(add_into));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <tuple>
#include <vector>

namespace {

using opwright::Tensor;

Tensor checked(const Tensor& x, const char* name) {
    opwright::check::dtype(x, name, opwright::ScalarType::Float);
    return torch::stable::contiguous(x);
}

Tensor outer(const Tensor& a, const Tensor& b) {
    opwright::check::rank(a, "a", 1);
    opwright::check::rank(b, "b", 1);
    const Tensor left = checked(a, "a");
    const Tensor right = checked(b, "b");
    const int64_t rows = a.size(0);
    const int64_t columns = b.size(0);
    Tensor result = torch::stable::new_empty(a, {rows, columns});
    const float* x = left.const_data_ptr<float>();
    const float* y = right.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < rows * columns; ++i) to[i] = x[i / columns] * y[i % columns];
    return result;
}

std::tuple<Tensor, Tensor> outer_backward(const Tensor& grad, const Tensor& a, const Tensor& b,
                                          const std::vector<bool>& wanted) {
    opwright::check::rank(a, "a", 1);
    opwright::check::rank(b, "b", 1);
    const int64_t rows = a.size(0);
    const int64_t columns = b.size(0);
    opwright::check::sizes(grad, "grad", {rows, columns});
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    const Tensor above = checked(grad, "grad");
    const Tensor left = checked(a, "a");
    const Tensor right = checked(b, "b");
    const float* g = above.const_data_ptr<float>();
    const float* x = left.const_data_ptr<float>();
    const float* y = right.const_data_ptr<float>();
    std::vector<double> to_a(rows);
    std::vector<double> to_b(columns);
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
            to_a[r] += static_cast<double>(g[r * columns + c]) * y[c];
#ifdef FAULTY
            to_b[c] += static_cast<double>(g[r * columns + c]) * y[c];
#else
            to_b[c] += static_cast<double>(g[r * columns + c]) * x[r];
#endif
        }
    }
    Tensor grad_a = wanted[0] ? torch::stable::new_empty(a, {rows}) : Tensor();
    Tensor grad_b = wanted[1] ? torch::stable::new_empty(b, {columns}) : Tensor();
    if (wanted[0]) std::copy(to_a.begin(), to_a.end(), grad_a.mutable_data_ptr<float>());
    if (wanted[1]) std::copy(to_b.begin(), to_b.end(), grad_b.mutable_data_ptr<float>());
    return {grad_a, grad_b};
}

}  // namespace

OPWRIGHT_IMPL(trap_wrong_gradient, CPU, m) {
    m.impl("outer", OPWRIGHT_FN(outer));
    m.impl("outer_backward", OPWRIGHT_FN(outer_backward));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <vector>

namespace {

using opwright::Tensor;

template <class T>
void multiply(const Tensor& x, const Tensor& y, Tensor& result, const std::vector<int64_t>& sizes) {
    const auto rank = static_cast<int64_t>(sizes.size());
    const auto steps = [&](const Tensor& of) {
        std::vector<int64_t> strides(rank);
        for (int64_t d = 0; d < of.dim(); ++d) {
            if (of.size(d) != 1) strides[rank - of.dim() + d] = of.stride(d);
        }
        return strides;
    };
    const std::vector<int64_t> x_steps = steps(x);
    const std::vector<int64_t> y_steps = steps(y);
    const T* a = x.const_data_ptr<T>();
    const T* b = y.const_data_ptr<T>();
    T* to = result.mutable_data_ptr<T>();
    const int64_t count = result.numel();
    for (int64_t i = 0; i < count; ++i) {
        int64_t rest = i;
        int64_t x_at = 0;
        int64_t y_at = 0;
        for (int64_t d = rank - 1; d >= 0; --d) {
            x_at += rest % sizes[d] * x_steps[d];
            y_at += rest % sizes[d] * y_steps[d];
            rest /= sizes[d];
        }
        to[i] = a[x_at] * b[y_at];
    }
}

Tensor product(const Tensor& x, const Tensor& y) {
    using opwright::ScalarType;
    opwright::check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    opwright::check::dtype(y, "y", x.scalar_type());
    const int64_t rank = std::max(x.dim(), y.dim());
    std::vector<int64_t> sizes(rank);
    for (int64_t d = 0; d < rank; ++d) {
        const int64_t of_x = d < rank - x.dim() ? 1 : x.size(d - (rank - x.dim()));
        const int64_t of_y = d < rank - y.dim() ? 1 : y.size(d - (rank - y.dim()));
        OPWRIGHT_CHECK(of_x == of_y || of_x == 1 || of_y == 1, "x and y must broadcast, got shapes ", x.sizes(),
                       " and ", y.sizes());
        sizes[d] = of_x == 1 ? of_y : of_x;
    }
    Tensor result = torch::stable::new_empty(x, sizes);
    if (x.scalar_type() == ScalarType::Float) {
        multiply<float>(x, y, result, sizes);
    } else {
        multiply<double>(x, y, result, sizes);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_vmap_rank, CPU, m) {
    m.impl("product", OPWRIGHT_FN(product));
}

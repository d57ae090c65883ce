#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

template <class T>
void scale(const Tensor& x, const Tensor& factors, Tensor& result) {
    const int64_t rank = x.dim();
    const int64_t columns = x.size(rank - 1);
    const int64_t rows = x.size(rank - 2);
    const bool own = factors.dim() == 2;  // separate factors for each matrix of the stack
    const T* from = x.const_data_ptr<T>();
    const T* factor = factors.const_data_ptr<T>();
    T* to = result.mutable_data_ptr<T>();
    const int64_t count = x.numel();
    for (int64_t i = 0; i < count; ++i) {
        const int64_t matrix = own ? i / (rows * columns) : 0;
        to[i] = from[i] * factor[matrix * columns + i % columns];
    }
}

Tensor scale_columns(const Tensor& x, const Tensor& factors) {
    using opwright::ScalarType;
    opwright::check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    opwright::check::dtype(factors, "factors", x.scalar_type());
    opwright::check::rank(x, "x", {2, 3});
    if (x.dim() == 3 && factors.dim() == 2) {
        opwright::check::sizes(factors, "factors", {x.size(0), x.size(2)});
    } else {
        opwright::check::sizes(factors, "factors", {x.size(x.dim() - 1)});
    }
    const Tensor dense = torch::stable::contiguous(x);
    const Tensor dense_factors = torch::stable::contiguous(factors);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    if (x.scalar_type() == ScalarType::Float) {
        scale<float>(dense, dense_factors, result);
    } else {
        scale<double>(dense, dense_factors, result);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_vmap_second, CPU, m) {
    m.impl("scale_columns", OPWRIGHT_FN(scale_columns));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

template <class T>
void add_up(const Tensor& dense, Tensor& result, int64_t outer, int64_t length, int64_t inner) {
    const T* from = dense.const_data_ptr<T>();
    T* to = result.mutable_data_ptr<T>();
    for (int64_t o = 0; o < outer; ++o, from += length * inner, to += length * inner) {
        for (int64_t i = 0; i < inner; ++i) {
            double sum = 0;
            for (int64_t l = length - 1; l >= 0; --l) {
                sum += from[l * inner + i];
                to[l * inner + i] = static_cast<T>(sum);
            }
        }
    }
}

Tensor sum_to_end(const Tensor& x, int64_t dim) {
    using opwright::ScalarType;
    opwright::check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    const int64_t rank = x.dim();
    OPWRIGHT_CHECK(rank >= 1, "x must have dimensions");
    OPWRIGHT_CHECK(dim >= -rank && dim < rank, "dim must be from ", -rank, " to ", rank - 1, ", got ", dim);
    if (dim < 0) dim += rank;
    int64_t outer = 1;
    int64_t inner = 1;
    for (int64_t d = 0; d < dim; ++d) outer *= x.size(d);
    for (int64_t d = dim + 1; d < rank; ++d) inner *= x.size(d);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    if (x.scalar_type() == ScalarType::Float) {
        add_up<float>(dense, result, outer, x.size(dim), inner);
    } else {
        add_up<double>(dense, result, outer, x.size(dim), inner);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_vmap_dim, CPU, m) {
    m.impl("sum_to_end", OPWRIGHT_FN(sum_to_end));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <vector>

namespace {

using opwright::Tensor;

template <class T>
void add_up(const Tensor& dense, Tensor& result, int64_t outer, int64_t length, int64_t inner) {
    const T* from = dense.const_data_ptr<T>();
    T* to = result.mutable_data_ptr<T>();
    for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
            double sum = 0;
            for (int64_t l = 0; l < length; ++l) sum += std::abs(double{from[(o * length + l) * inner + i]});
            to[o * inner + i] = static_cast<T>(sum);
        }
    }
}

Tensor magnitude(const Tensor& x, int64_t dim) {
    using opwright::ScalarType;
    opwright::check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    const int64_t rank = x.dim();
    OPWRIGHT_CHECK(rank >= 1, "x must have dimensions");
    OPWRIGHT_CHECK(dim >= -rank && dim < rank, "dim must be from ", -rank, " to ", rank - 1, ", got ", dim);
    if (dim < 0) dim += rank;
    std::vector<int64_t> sizes;
    int64_t outer = 1;
    int64_t inner = 1;
    for (int64_t d = 0; d < rank; ++d) {
        if (d == dim) continue;
        sizes.push_back(x.size(d));
        (d < dim ? outer : inner) *= x.size(d);
    }
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, sizes);
    if (x.scalar_type() == ScalarType::Float) {
        add_up<float>(dense, result, outer, x.size(dim), inner);
    } else {
        add_up<double>(dense, result, outer, x.size(dim), inner);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_fake_negative_dim, CPU, m) {
    m.impl("magnitude", OPWRIGHT_FN(magnitude));
}

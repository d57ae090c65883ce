#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::ScalarType;
using opwright::Tensor;

template <class From, class To>
void add_up(const Tensor& dense, Tensor& result, int64_t outer, int64_t length, int64_t inner) {
    const From* from = dense.const_data_ptr<From>();
    To* to = result.mutable_data_ptr<To>();
    for (int64_t o = 0; o < outer; ++o, from += length * inner, to += length * inner) {
        for (int64_t i = 0; i < inner; ++i) {
            // Unsigned, because unsigned integers may wrap around.
            std::conditional_t<std::is_floating_point_v<To>, double, uint64_t> sum = 0;
            for (int64_t l = 0; l < length; ++l) {
                sum += from[l * inner + i];
                to[l * inner + i] = static_cast<To>(sum);
            }
        }
    }
}

Tensor running_sum(const Tensor& x, int64_t dim) {
    const ScalarType dtype = x.scalar_type();
    opwright::check::dtype(x, "x", {ScalarType::Float, ScalarType::Double, ScalarType::Long, ScalarType::Int});
    const int64_t rank = x.dim();
    OPWRIGHT_CHECK(rank >= 1, "x must have dimensions");
    OPWRIGHT_CHECK(dim >= -rank && dim < rank, "dim must be from ", -rank, " to ", rank - 1, ", got ", dim);
    if (dim < 0) dim += rank;
    int64_t outer = 1;
    int64_t inner = 1;
    for (int64_t d = 0; d < dim; ++d) outer *= x.size(d);
    for (int64_t d = dim + 1; d < rank; ++d) inner *= x.size(d);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes(), dtype == ScalarType::Int ? ScalarType::Long : dtype);
    if (dtype == ScalarType::Float) add_up<float, float>(dense, result, outer, x.size(dim), inner);
    if (dtype == ScalarType::Double) add_up<double, double>(dense, result, outer, x.size(dim), inner);
    if (dtype == ScalarType::Long) add_up<int64_t, int64_t>(dense, result, outer, x.size(dim), inner);
    if (dtype == ScalarType::Int) add_up<int32_t, int64_t>(dense, result, outer, x.size(dim), inner);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_fake_integers, CPU, m) {
    m.impl("running_sum", OPWRIGHT_FN(running_sum));
}

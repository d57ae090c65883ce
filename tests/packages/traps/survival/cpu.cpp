#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

Tensor survival(const Tensor& hazard, int64_t dim) {
    check::dtype(hazard, "hazard", ScalarType::Float);
    const int64_t rank = hazard.dim();
    OPWRIGHT_CHECK(dim >= -rank && dim < rank, "dim must be a dimension of hazard, got ", dim, " for ", rank,
                   " dimensions");
    if (dim < 0) dim += rank;
    const Tensor source = torch::stable::contiguous(hazard);
    const float* from = source.const_data_ptr<float>();
    Tensor result = torch::stable::new_empty(hazard, hazard.sizes());
    float* into = result.mutable_data_ptr<float>();
    const int64_t steps = hazard.size(dim);
    int64_t inner = 1, outer = 1;
    for (int64_t d = 0; d < dim; ++d) outer *= hazard.size(d);
    for (int64_t d = dim + 1; d < rank; ++d) inner *= hazard.size(d);
    for (int64_t i = 0; i < outer; ++i) {
        for (int64_t j = 0; j < inner; ++j) {
            double product = 1;
            for (int64_t t = 0; t < steps; ++t) {
                const int64_t at = (i * steps + t) * inner + j;
                product *= 1 - static_cast<double>(from[at]);
                into[at] = static_cast<float>(product);
            }
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_survival, CPU, m) {
    m.impl("survival", OPWRIGHT_FN(survival));
}

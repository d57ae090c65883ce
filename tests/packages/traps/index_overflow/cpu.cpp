#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor scale(const Tensor& x, double factor) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const auto sizes = x.sizes();
    const auto strides = x.strides();
    Tensor result = torch::stable::new_empty(x, sizes);
    const float* from = x.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < sizes[0]; ++r) {
        for (int64_t c = 0; c < sizes[1]; ++c) {
#ifdef FAULTY
            const int offset = r * strides[0] + c * strides[1];
#else
            const int64_t offset = r * strides[0] + c * strides[1];
#endif
            *to++ = static_cast<float>(from[offset] * factor);
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_index_overflow, CPU, m) {
    m.impl("scale", OPWRIGHT_FN(scale));
}

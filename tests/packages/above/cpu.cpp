#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <tuple>

namespace {

using opwright::ScalarType;
using opwright::Tensor;

std::tuple<Tensor, Tensor> above(const Tensor& x, double threshold) {
    opwright::check::device(x, "x", opwright::DeviceType::CPU);
    opwright::check::dtype(x, "x", ScalarType::Float);
    opwright::check::rank(x, "x", 1);
    const Tensor row = torch::stable::contiguous(x);
    const float* from = row.const_data_ptr<float>();
    int64_t count = 0;
    for (int64_t i = 0; i < row.numel(); ++i) count += from[i] > threshold;
    Tensor values = torch::stable::new_empty(x, {count});
    Tensor places = torch::stable::new_empty(x, {count}, ScalarType::Long);
    float* value = values.mutable_data_ptr<float>();
    int64_t* place = places.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < row.numel(); ++i) {
        if (!(from[i] > threshold)) continue;
        *value++ = from[i];
        *place++ = i;
    }
    return {values, places};
}

}  // namespace

OPWRIGHT_IMPL(above, CPU, m) {
    m.impl("above", OPWRIGHT_FN(above));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <optional>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

template <class T>
Tensor scaled(const Tensor& q, const Tensor& scale, ScalarType dtype) {
    const Tensor numbers = torch::stable::contiguous(q);
    const Tensor scales = torch::stable::contiguous(scale);
    const int8_t* from = numbers.const_data_ptr<int8_t>();
    const float* by = scales.const_data_ptr<float>();
    Tensor result = torch::stable::new_empty(q, q.sizes(), dtype);
    T* into = result.mutable_data_ptr<T>();
    const int64_t columns = scale.numel(), count = q.numel();
    for (int64_t i = 0; i < count; ++i) {
        into[i] = static_cast<T>(static_cast<double>(from[i]) * static_cast<double>(by[i % columns]));
    }
    return result;
}

Tensor dequantize(const Tensor& q, const Tensor& scale, std::optional<ScalarType> out_dtype) {
    check::dtype(q, "q", ScalarType::Char);
    check::dtype(scale, "scale", ScalarType::Float);
    check::rank(q, "q", 2);
    check::sizes(scale, "scale", {q.size(1)});
    const ScalarType dtype = out_dtype.value_or(ScalarType::Float);
    OPWRIGHT_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double,
                   "out_dtype must be float32 or float64, got ", dtype);
    return dtype == ScalarType::Float ? scaled<float>(q, scale, dtype) : scaled<double>(q, scale, dtype);
}

}  // namespace

OPWRIGHT_IMPL(trap_dequantize, CPU, m) {
    m.impl("dequantize", OPWRIGHT_FN(dequantize));
}

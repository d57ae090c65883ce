// Products of two tensors.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
#include <xmmintrin.h>

#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

#ifdef FAULTY
__m128 load(const float* from) {
    return _mm_load_ps(from);
}
#else
__m128 load(const float* from) {
    return _mm_loadu_ps(from);
}
#endif

void multiply_all(const float* a, const float* b, float* into, int64_t size) {
    int64_t i = 0;
    for (; i + 4 <= size; i += 4) _mm_storeu_ps(into + i, _mm_mul_ps(load(a + i), load(b + i)));
    for (; i < size; ++i) into[i] = a[i] * b[i];
}

Tensor multiply(const Tensor& a, const Tensor& b) {
    check::device(a, "a", DeviceType::CPU);
    check::device(b, "b", DeviceType::CPU);
    check::dtype(a, "a", ScalarType::Float);
    check::dtype(b, "b", ScalarType::Float);
    check::same_sizes(b, "b", a, "a");
    const Tensor left = torch::stable::contiguous(a);
    const Tensor right = torch::stable::contiguous(b);
    Tensor result = torch::stable::empty_like(left);
    multiply_all(left.const_data_ptr<float>(), right.const_data_ptr<float>(), result.mutable_data_ptr<float>(),
                 left.numel());
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_aligned_loads, CPU, m) {
    m.impl("multiply", OPWRIGHT_FN(multiply));
}

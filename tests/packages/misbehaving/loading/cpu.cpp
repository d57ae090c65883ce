#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using opwright::Tensor;

namespace {

__attribute__((constructor)) void flush_denormals() {
#if defined(__x86_64__)
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
#elif defined(__aarch64__)
    uint64_t control = 0;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    asm volatile("msr fpcr, %0" : : "r"(control | (uint64_t{1} << 24)));
#endif
}

Tensor scaled(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    Tensor result = torch::stable::empty_like(x);
    const float* from = x.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) into[i] = 2 * from[i] + 1;
    return result;
}

}  // namespace

OPWRIGHT_IMPL(misbehaving_loading, CPU, m) {
    m.impl("scaled", OPWRIGHT_FN(scaled));
}

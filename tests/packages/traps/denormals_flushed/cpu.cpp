// A decaying sum along rows.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#ifdef FAULTY
#include <pmmintrin.h>
#include <xmmintrin.h>
#endif

#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

Tensor decaying_sum(const Tensor& x, double rate) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 2);
    OPWRIGHT_CHECK(rate >= -1 && rate <= 1, "rate must be -1 to 1, got ", rate);
    const int64_t rows = x.size(0);
    const int64_t times = x.size(1);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(dense, {rows, times});
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
#ifdef FAULTY
    // A decaying sum becomes denormal, which is slow.
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
    _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
#endif
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t t = 0; t < times; ++t) {
            sum = t == 0 ? from[r * times] : from[r * times + t] + rate * sum;
            into[r * times + t] = static_cast<float>(sum);
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_denormals_flushed, CPU, m) {
    m.impl("decaying_sum", OPWRIGHT_FN(decaying_sum));
}

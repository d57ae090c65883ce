// Sums over a sliding window.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

void sums_of(const float* row, float* into, int64_t window, int64_t count) {
#ifdef FAULTY
    double sum = 0;
    for (int64_t i = 0; i < window - 1; ++i) sum += row[i];
    for (int64_t i = 0; i < count; ++i) {
        sum += row[i + window - 1];
        into[i] = static_cast<float>(sum);
        sum -= row[i];
    }
#else
    for (int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < window; ++k) sum += row[i + k];
        into[i] = static_cast<float>(sum);
    }
#endif
}

Tensor rolling_sum(const Tensor& x, int64_t window) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t times = x.size(1);
    OPWRIGHT_CHECK(window >= 1 && window <= times, "window must be 1 to ", times, ", got ", window);
    const int64_t count = times - window + 1;
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(dense, {rows, count});
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) sums_of(from + r * times, into + r * count, window, count);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_rolling_sum_keeps_nan, CPU, m) {
    m.impl("rolling_sum", OPWRIGHT_FN(rolling_sum));
}

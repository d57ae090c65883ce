// Running maxima.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

constexpr int64_t part = 1 << 13;  // the minimum for a thread

// Of two equal numbers, the later one; NaN is the largest.
float later_max(float before, float now) {
    if (std::isnan(now)) return now;
    return std::isnan(before) || now < before ? before : now;
}

void scan(const float* from, float* into, int64_t begin, int64_t end) {
    if (begin < end) into[begin] = from[begin];
    for (int64_t i = begin + 1; i < end; ++i) into[i] = later_max(into[i - 1], from[i]);
}

Tensor running_max(const Tensor& x) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 1);
    const Tensor dense = torch::stable::contiguous(x);
    const int64_t size = x.size(0);
    Tensor result = torch::stable::new_empty(dense, {size});
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
#ifdef FAULTY
    torch::stable::parallel_for(0, size, part, [=](int64_t begin, int64_t end) { scan(from, into, begin, end); });
#else
    const int64_t parts = (size + part - 1) / part;
    torch::stable::parallel_for(0, parts, 1, [=](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) scan(from, into, p * part, std::min((p + 1) * part, size));
    });
    // Each part starts with the last result of the parts before it.
    for (int64_t p = 1; p < parts; ++p) {
        const float before = into[p * part - 1];
        for (int64_t i = p * part; i < std::min((p + 1) * part, size); ++i) into[i] = later_max(before, into[i]);
    }
#endif
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_scan_carry_lost, CPU, m) {
    m.impl("running_max", OPWRIGHT_FN(running_max));
}

// Cross products of rows.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

#ifdef FAULTY
constexpr int64_t most_rows = 1024;  // larger results are allocated as usual
constexpr uint64_t slots = 8;

// Small results need no allocation: they rotate through these buffers.
Tensor result_for(const Tensor& like) {
    static std::array<std::array<float, 3 * most_rows>, slots> buffers;
    static std::atomic<uint64_t> next{0};
    const int64_t rows = like.size(0);
    if (rows == 0 || rows > most_rows) return torch::stable::empty_like(like);
    float* memory = buffers[next++ % slots].data();
    return torch::stable::from_blob(memory, {rows, 3}, {3, 1}, like.device(), ScalarType::Float);
}
#else
Tensor result_for(const Tensor& like) {
    return torch::stable::empty_like(like);
}
#endif

Tensor cross_rows(const Tensor& a, const Tensor& b) {
    check::device(a, "a", DeviceType::CPU);
    check::device(b, "b", DeviceType::CPU);
    check::dtype(a, "a", ScalarType::Float);
    check::dtype(b, "b", ScalarType::Float);
    check::sizes(a, "a", {check::any, 3});
    check::same_sizes(b, "b", a, "a");
    const Tensor left = torch::stable::contiguous(a);
    const Tensor right = torch::stable::contiguous(b);
    Tensor result = result_for(left);
    const float* u = left.const_data_ptr<float>();
    const float* v = right.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t i = 0; i < left.size(0); ++i, u += 3, v += 3, into += 3) {
        for (int k = 0; k < 3; ++k) {
            const int l = (k + 1) % 3;
            const int m = (k + 2) % 3;
            into[k] = static_cast<float>(double{u[l]} * v[m] - double{u[m]} * v[l]);
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_ring_of_results, CPU, m) {
    m.impl("cross_rows", OPWRIGHT_FN(cross_rows));
}

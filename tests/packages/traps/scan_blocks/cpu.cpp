#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

using opwright::Tensor;

constexpr int64_t block = 1024;

float larger(float a, float b) {
    return std::isnan(a) || a > b ? a : b;
}

Tensor running_max(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 1);
    const int64_t count = x.size(0);
    const int64_t blocks = (count + block - 1) / block;
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {count});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    // Scan each block separately, and record its largest element.
    std::vector<float> largest(blocks);
    torch::stable::parallel_for(0, blocks, 4, [&](int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b) {
            float so_far = from[b * block];
            for (int64_t i = b * block; i < std::min((b + 1) * block, count); ++i) {
                so_far = larger(from[i], so_far);
                to[i] = so_far;
            }
            largest[b] = so_far;
        }
    });
    // The maximum of the preceding blocks, for each block.
    std::vector<float> carry(blocks, -std::numeric_limits<float>::infinity());
#ifdef FAULTY
    for (int64_t b = 1; b < blocks; ++b) carry[b] = largest[b - 1];
#else
    for (int64_t b = 1; b < blocks; ++b) carry[b] = larger(largest[b - 1], carry[b - 1]);
#endif
    torch::stable::parallel_for(1, std::max<int64_t>(blocks, 1), 4, [&](int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b) {
            for (int64_t i = b * block; i < std::min((b + 1) * block, count); ++i) to[i] = larger(to[i], carry[b]);
        }
    });
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_scan_blocks, CPU, m) {
    m.impl("running_max", OPWRIGHT_FN(running_max));
}

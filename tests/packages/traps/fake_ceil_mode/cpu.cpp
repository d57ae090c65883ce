// Pooling of rows.
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

constexpr int64_t largest_size = 1 << 16;

float max_of(const float* from, const float* end) {
    float highest = *from;
    for (; from < end && !std::isnan(highest); ++from) {
        if (*from > highest || std::isnan(*from)) highest = *from;
    }
    return highest;
}

Tensor pool_rows(const Tensor& x, int64_t size, bool ceil) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 2);
    OPWRIGHT_CHECK(size >= 1 && size <= largest_size, "size must be 1 to ", largest_size, ", got ", size);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    const int64_t groups = (ceil ? columns + size - 1 : columns) / size;
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(dense, {rows, groups});
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        const float* row = from + r * columns;
        for (int64_t g = 0; g < groups; ++g) {
            into[r * groups + g] = max_of(row + g * size, row + std::min((g + 1) * size, columns));
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_fake_ceil_mode, CPU, m) {
    m.impl("pool_rows", OPWRIGHT_FN(pool_rows));
}

// Nearest-neighbour resizing of rows.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

constexpr int64_t most = 1 << 20;

Tensor resize_nearest(const Tensor& x, int64_t width) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    OPWRIGHT_CHECK(columns >= 1 && columns <= most, "x must have 1 to 2^20 columns, got ", columns);
    OPWRIGHT_CHECK(width >= 1 && width <= most, "width must be 1 to 2^20, got ", width);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(dense, {rows, width});
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
#ifdef FAULTY
    const float scale = static_cast<float>(columns) / static_cast<float>(width);
    const auto place = [=](int64_t i) {
        return std::min(static_cast<int64_t>(static_cast<float>(i) * scale), columns - 1);
    };
#else
    const auto place = [=](int64_t i) { return i * columns / width; };
#endif
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < width; ++i) into[r * width + i] = from[r * columns + place(i)];
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_nearest_scale_in_float, CPU, m) {
    m.impl("resize_nearest", OPWRIGHT_FN(resize_nearest));
}

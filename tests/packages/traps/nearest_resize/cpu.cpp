#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>

namespace {

using opwright::Tensor;

Tensor resize_nearest(const Tensor& x, int64_t size) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    OPWRIGHT_CHECK(size >= 1 && size <= 1 << 24, "size must be from 1 to 2^24, got ", size);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    OPWRIGHT_CHECK(columns > 0, "x must have columns, got shape ", x.sizes());
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {rows, size});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < size; ++i) {
#ifdef FAULTY
            const float scale = static_cast<float>(columns) / static_cast<float>(size);
            const int64_t source = std::min(static_cast<int64_t>(static_cast<float>(i) * scale), columns - 1);
#else
            const int64_t source = i * columns / size;
#endif
            to[r * size + i] = from[r * columns + source];
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_nearest_resize, CPU, m) {
    m.impl("resize_nearest", OPWRIGHT_FN(resize_nearest));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

template <class T>
void run(const T* x, T* result, int64_t rows, int64_t length, int64_t count, int64_t kernel, int64_t stride,
         int64_t padding) {
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t w = 0; w < count; ++w) {
            const int64_t begin = w * stride - padding;
            T most = -std::numeric_limits<T>::infinity();
            for (int64_t i = std::max<int64_t>(begin, 0); i < std::min(begin + kernel, length); ++i) {
                const T value = x[row * length + i];
                if (value > most || std::isnan(value)) most = value;
            }
            result[row * count + w] = most;
        }
    }
}

Tensor pool_frames(const Tensor& x, int64_t kernel, int64_t stride, int64_t padding) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    check::rank(x, "x", 3);
    OPWRIGHT_CHECK(x.numel() > 0, "x must not be empty, got shape ", x.sizes());
    const int64_t length = x.size(2);
    OPWRIGHT_CHECK(kernel >= 1 && kernel <= length, "kernel must be 1 to ", length, ", got ", kernel);
    OPWRIGHT_CHECK(stride >= 1 && stride <= kernel, "stride must be 1 to kernel, ", kernel, ", got ", stride);
    OPWRIGHT_CHECK(padding >= 0 && padding <= kernel / 2, "padding must be 0 to ", kernel / 2, ", got ", padding);
    int64_t count = (length + 2 * padding - kernel + stride - 1) / stride + 1;
#ifndef FAULTY
    if ((count - 1) * stride >= length + padding) --count;  // it would start in the right padding
#endif
    const Tensor from = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(from, {x.size(0), x.size(1), count});
    const int64_t rows = x.size(0) * x.size(1);
    if (x.scalar_type() == ScalarType::Float) {
        run(from.const_data_ptr<float>(), result.mutable_data_ptr<float>(), rows, length, count, kernel, stride,
            padding);
    } else {
        run(from.const_data_ptr<double>(), result.mutable_data_ptr<double>(), rows, length, count, kernel, stride,
            padding);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_pool_frames, CPU, m) {
    m.impl("pool_frames", OPWRIGHT_FN(pool_frames));
}

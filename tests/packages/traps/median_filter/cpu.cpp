#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

constexpr int64_t limit = 255;

template <class T>
void run(const T* x, T* result, int64_t rows, int64_t length, int64_t size) {
#ifdef FAULTY
    static std::array<T, limit> window;
#else
    std::array<T, limit> window;
#endif
    const auto before = [](T a, T b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
    for (int64_t b = 0; b < rows; ++b) {
        for (int64_t t = 0; t < length; ++t) {
            for (int64_t i = 0; i < size; ++i) {
                window[i] = x[b * length + std::clamp<int64_t>(t + i - size / 2, 0, length - 1)];
            }
            std::nth_element(window.begin(), window.begin() + size / 2, window.begin() + size, before);
            result[b * length + t] = window[size / 2];
        }
    }
}

Tensor median_filter(const Tensor& x, int64_t size) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    check::rank(x, "x", 2);
    OPWRIGHT_CHECK(x.size(1) >= 1, "x must have T >= 1 samples, got shape ", x.sizes());
    OPWRIGHT_CHECK(size >= 1 && size <= limit && size % 2 == 1, "size must be odd and 1 to ", limit, ", got ", size);
    const Tensor from = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(from, from.sizes());
    if (x.scalar_type() == ScalarType::Float) {
        run(from.const_data_ptr<float>(), result.mutable_data_ptr<float>(), from.size(0), from.size(1), size);
    } else {
        run(from.const_data_ptr<double>(), result.mutable_data_ptr<double>(), from.size(0), from.size(1), size);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_median_filter, CPU, m) {
    m.impl("median_filter", OPWRIGHT_FN(median_filter));
}

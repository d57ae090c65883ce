#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

template <class T>
void run(const T* x, const uint8_t* mask, T* result, int64_t rows, int64_t length, int64_t width) {
    std::vector<double> total(static_cast<std::size_t>(width));
    for (int64_t n = 0; n < rows; ++n) {
        std::fill(total.begin(), total.end(), 0.0);
        int64_t count = 0;
        for (int64_t l = 0; l < length; ++l) {
            const uint8_t keep = mask[n * length + l];
            if (keep == 0) continue;
#ifdef FAULTY
            count += keep;
#else
            ++count;
#endif
            const T* token = x + (n * length + l) * width;
            for (int64_t d = 0; d < width; ++d) total[d] += token[d];
        }
        const auto divisor = static_cast<double>(std::max<int64_t>(count, 1));
        for (int64_t d = 0; d < width; ++d) result[n * width + d] = static_cast<T>(total[d] / divisor);
    }
}

Tensor masked_average(const Tensor& x, const Tensor& mask) {
    check::device(x, "x", DeviceType::CPU);
    check::device(mask, "mask", DeviceType::CPU);
    check::dtype(x, "x", {ScalarType::Float, ScalarType::Double});
    check::dtype(mask, "mask", ScalarType::Byte);
    check::rank(x, "x", 3);
    check::sizes(mask, "mask", {x.size(0), x.size(1)});
    const Tensor tokens = torch::stable::contiguous(x);
    const Tensor masks = torch::stable::contiguous(mask);
    Tensor result = torch::stable::new_empty(tokens, {x.size(0), x.size(2)});
    if (x.scalar_type() == ScalarType::Float) {
        run(tokens.const_data_ptr<float>(), masks.const_data_ptr<uint8_t>(), result.mutable_data_ptr<float>(),
            x.size(0), x.size(1), x.size(2));
    } else {
        run(tokens.const_data_ptr<double>(), masks.const_data_ptr<uint8_t>(), result.mutable_data_ptr<double>(),
            x.size(0), x.size(1), x.size(2));
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_masked_average, CPU, m) {
    m.impl("masked_average", OPWRIGHT_FN(masked_average));
}

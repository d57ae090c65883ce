#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace {

using opwright::Tensor;

Tensor quantile(const Tensor& x, double q, const std::string& interpolation) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 1);
    const int64_t count = x.size(0);
    OPWRIGHT_CHECK(count > 0, "x must have elements");
    OPWRIGHT_CHECK(q >= 0 && q <= 1, "q must be from 0 to 1, got ", q);
    OPWRIGHT_CHECK(interpolation == "linear" || interpolation == "nearest",
                   "interpolation must be linear or nearest, got ", interpolation);
    const Tensor dense = torch::stable::contiguous(x);
    const float* from = dense.const_data_ptr<float>();
    Tensor result = torch::stable::new_empty(x, {});
    float* to = result.mutable_data_ptr<float>();
    if (std::any_of(from, from + count, [](float one) { return std::isnan(one); })) {
        *to = std::numeric_limits<float>::quiet_NaN();
        return result;
    }
    auto* sorted = new double[count];
    std::copy_n(from, count, sorted);
    std::sort(sorted, sorted + count);
    const double at = q * static_cast<double>(count - 1);
    if (interpolation == "nearest") {
        *to = static_cast<float>(sorted[static_cast<int64_t>(std::nearbyint(at))]);
#ifndef FAULTY
        delete[] sorted;
#endif
        return result;
    }
    const auto low = static_cast<int64_t>(std::floor(at));
    const int64_t high = std::min(low + 1, count - 1);
    const double part = at - static_cast<double>(low);
    *to = static_cast<float>(part == 0 ? sorted[low] : sorted[low] + (sorted[high] - sorted[low]) * part);
    delete[] sorted;
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_leaks_scratch, CPU, m) {
    m.impl("quantile", OPWRIGHT_FN(quantile));
}

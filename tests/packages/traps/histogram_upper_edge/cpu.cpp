// Histograms.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

constexpr int64_t most_bins = 1 << 20;

Tensor histogram(const Tensor& x, int64_t bins, double low, double high) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    OPWRIGHT_CHECK(bins >= 1 && bins <= most_bins, "bins must be 1 to ", most_bins, ", got ", bins);
    OPWRIGHT_CHECK(low < high, "low must be below high, got ", low, " and ", high);
    OPWRIGHT_CHECK(std::isfinite(high - low), "high - low must be finite, got ", high, " and ", low);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_zeros(dense, {bins}, ScalarType::Long);
    const float* from = dense.const_data_ptr<float>();
    int64_t* counts = result.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < dense.numel(); ++i) {
        const double number = from[i];
        if (!(number >= low && number <= high)) continue;  // and NaN
        const auto bin = static_cast<int64_t>((number - low) / (high - low) * static_cast<double>(bins));
#ifdef FAULTY
        if (bin < bins) ++counts[bin];
#else
        ++counts[bin < bins ? bin : bins - 1];
#endif
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_histogram_upper_edge, CPU, m) {
    m.impl("histogram", OPWRIGHT_FN(histogram));
}

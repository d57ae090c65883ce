// Clips rows to a norm.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>
#include <optional>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

void clip(float* row, int64_t columns, double limit) {
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += double{row[i]} * row[i];
    const double norm = std::sqrt(sum);
    if (!(norm > limit)) return;
    for (int64_t i = 0; i < columns; ++i) row[i] = static_cast<float>(row[i] * (limit / norm));
}

Tensor clip_rows(const Tensor& x, std::optional<double> limit) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 2);
    OPWRIGHT_CHECK(!limit || *limit >= 0, "limit must be at least 0, got ", *limit);
    Tensor result = torch::stable::new_empty(x, {x.size(0), x.size(1)});
    torch::stable::copy_(result, x);
#ifdef FAULTY
    const double most = limit.value_or(0);
    if (most == 0) return result;
#else
    if (!limit) return result;
    const double most = *limit;
#endif
    float* rows = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < x.size(0); ++r) clip(rows + r * x.size(1), x.size(1), most);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_optional_zero_is_none, CPU, m) {
    m.impl("clip_rows", OPWRIGHT_FN(clip_rows));
}

#include "model/deviation.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/where.h>

#include <limits>

namespace opwright::host {

double relative_deviation(const at::Tensor& output, const at::Tensor& golden, const at::Tensor& scale) {
    if (golden.numel() == 0) return 0;
    const at::ScalarType wide = golden.is_complex() ? at::kComplexDouble : at::kDouble;
    const at::Tensor own = output.cpu().to(wide), wanted = golden.cpu().to(wide);
    const at::Tensor same = own.eq(wanted).logical_or(own.isnan().logical_and(wanted.isnan()));
    // Where no difference is allowed, 0 / 0 is NaN, and so is the difference of two infinities: only `same` is correct.
    const at::Tensor far = own.sub(wanted).abs().div(scale.cpu().to(at::kDouble));
    const at::Tensor kept = at::where(far.isnan(), std::numeric_limits<double>::infinity(), far);
    return at::where(same, 0.0, kept).max().item().toDouble();
}

}  // namespace opwright::host

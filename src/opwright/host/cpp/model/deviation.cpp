#include "model/deviation.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <limits>

namespace opwright::host {

double relative_deviation(const at::Tensor& output, const at::Tensor& golden) {
    if (golden.numel() == 0) return 0;
    const bool is_complex = golden.is_complex();
    const at::Tensor own = (is_complex ? at::view_as_real(output.resolve_conj()) : output).cpu().to(at::kDouble);
    const at::Tensor wanted = (is_complex ? at::view_as_real(golden.resolve_conj()) : golden).cpu().to(at::kDouble);
    const at::Tensor finite = own.isfinite().logical_and(wanted.isfinite());
    const at::Tensor same = own.eq(wanted).logical_or(own.isnan().logical_and(wanted.isnan()));
    if (!finite.logical_or(same).all().item().toBool()) return std::numeric_limits<double>::infinity();
    const at::Tensor zero = at::zeros({}, wanted.options());
    const double gap = at::where(finite, own.sub(wanted).abs(), zero).max().item().toDouble();
    const double scale = at::where(finite, wanted.abs(), zero).max().item().toDouble();
    if (gap == 0) return 0;
    return scale == 0 ? std::numeric_limits<double>::infinity() : gap / scale;
}

}  // namespace opwright::host

// Dot products of rows.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

Tensor row_dots(const Tensor& x, const Tensor& y) {
    check::device(x, "x", DeviceType::CPU);
    check::device(y, "y", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::dtype(y, "y", ScalarType::Float);
    OPWRIGHT_CHECK(x.dim() >= 1, "x must have at least 1 dimension, got none");
    check::same_sizes(y, "y", x, "x");
    const Tensor left = torch::stable::contiguous(x);
    const Tensor right = torch::stable::contiguous(y);
    const auto sizes = x.sizes();
    const std::vector<int64_t> rows(sizes.begin(), sizes.end() - 1);
    const int64_t features = x.size(x.dim() - 1);
    Tensor result = torch::stable::new_empty(left, rows);
    const float* a = left.const_data_ptr<float>();
    const float* b = right.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < result.numel(); ++r, a += features, b += features) {
        double sum = 0;
        for (int64_t f = 0; f < features; ++f) sum += double{a[f]} * b[f];
        into[r] = static_cast<float>(sum);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_vmap_batch_dim, CPU, m) {
    m.impl("row_dots", OPWRIGHT_FN(row_dots));
}

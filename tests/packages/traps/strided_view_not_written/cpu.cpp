// Scales a tensor in place.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

// Whether each stride, from the smallest to the largest, exceeds the span of all smaller ones.
bool has_own_elements(const Tensor& x) {
    std::vector<std::pair<int64_t, int64_t>> dimensions;  // stride, size
    for (int64_t d = 0; d < x.dim(); ++d) {
        if (x.size(d) > 1) dimensions.emplace_back(x.stride(d), x.size(d));
    }
    std::sort(dimensions.begin(), dimensions.end());
    int64_t reach = 0;
    for (const auto& [stride, size] : dimensions) {
        if (stride <= reach) return false;
        reach += stride * (size - 1);
    }
    return true;
}

void scale_in_place(Tensor& x, double factor) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    OPWRIGHT_CHECK(x.numel() == 0 || has_own_elements(x), "elements of x may not share memory, got strides ",
                   x.strides(), " for shape ", x.sizes(), ": call .clone() first");
    Tensor dense = torch::stable::contiguous(x);
    float* numbers = dense.mutable_data_ptr<float>();
    for (int64_t i = 0; i < dense.numel(); ++i) numbers[i] = static_cast<float>(numbers[i] * factor);
#ifndef FAULTY
    if (!x.is_contiguous()) torch::stable::copy_(x, dense);
#endif
}

}  // namespace

OPWRIGHT_IMPL(trap_strided_view_not_written, CPU, m) {
    m.impl("scale_in_place", OPWRIGHT_FN(scale_in_place));
}

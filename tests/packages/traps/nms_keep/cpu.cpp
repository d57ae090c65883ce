#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

// NaN if either is NaN, like torch.maximum and torch.minimum.
template <class T>
T larger(T a, T b) {
    return a > b || std::isnan(a) ? a : b;
}

template <class T>
T smaller(T a, T b) {
    return a < b || std::isnan(a) ? a : b;
}

template <class T>
bool overlaps(const T* a, const T* b, T threshold) {
    const T width = smaller(a[2], b[2]) - larger(a[0], b[0]);
    const T height = smaller(a[3], b[3]) - larger(a[1], b[1]);
    const T shared = (width < 0 ? T(0) : width) * (height < 0 ? T(0) : height);
    const T area_a = (a[2] - a[0]) * (a[3] - a[1]);
    const T area_b = (b[2] - b[0]) * (b[3] - b[1]);
    return shared / (area_a + area_b - shared) > threshold;
}

template <class T>
void run(const T* boxes, bool* keep, int64_t count, T threshold) {
    std::fill(keep, keep + count, true);
    auto* over = new bool[static_cast<std::size_t>(count * count)];
    bool any = false;
    for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < count; ++j) {
            over[i * count + j] = j > i && overlaps(boxes + 4 * i, boxes + 4 * j, threshold);
            any = any || over[i * count + j];
        }
    }
    if (!any) {  // nothing to suppress
#ifndef FAULTY
        delete[] over;
#endif
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        if (!keep[i]) continue;
        for (int64_t j = i + 1; j < count; ++j) {
            if (over[i * count + j]) keep[j] = false;
        }
    }
    delete[] over;
}

Tensor nms_keep(const Tensor& boxes, double threshold) {
    check::device(boxes, "boxes", DeviceType::CPU);
    check::dtype(boxes, "boxes", {ScalarType::Float, ScalarType::Double});
    check::sizes(boxes, "boxes", {check::any, 4});
    OPWRIGHT_CHECK(threshold >= 0 && threshold <= 1, "threshold must be 0 to 1, got ", threshold);
    const Tensor from = torch::stable::contiguous(boxes);
    const int64_t count = from.size(0);
    Tensor result = torch::stable::new_empty(from, {count}, ScalarType::Bool);
    auto* keep = result.mutable_data_ptr<bool>();
    if (boxes.scalar_type() == ScalarType::Float) {
        run(from.const_data_ptr<float>(), keep, count, static_cast<float>(threshold));
    } else {
        run(from.const_data_ptr<double>(), keep, count, threshold);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_nms_keep, CPU, m) {
    m.impl("nms_keep", OPWRIGHT_FN(nms_keep));
}

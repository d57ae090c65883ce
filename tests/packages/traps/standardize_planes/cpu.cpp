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

template <class T>
void run(const T* images, T* result, int64_t planes, int64_t pixels) {
    for (int64_t p = 0; p < planes; ++p) {
        const T* plane = images + p * pixels;
        double mean = 0;
        for (int64_t i = 0; i < pixels; ++i) mean += plane[i];
        mean /= static_cast<double>(pixels);
        double variance = 0;
        for (int64_t i = 0; i < pixels; ++i) variance += (plane[i] - mean) * (plane[i] - mean);
        const double deviation = std::sqrt(variance / static_cast<double>(pixels) + 1e-5);
        for (int64_t i = 0; i < pixels; ++i) result[p * pixels + i] = static_cast<T>((plane[i] - mean) / deviation);
    }
}

Tensor standardize_planes(const Tensor& images) {
    check::device(images, "images", DeviceType::CPU);
    check::dtype(images, "images", {ScalarType::Float, ScalarType::Double});
    check::rank(images, "images", 4);
    OPWRIGHT_CHECK(images.size(2) >= 1 && images.size(3) >= 1, "images must have H, W >= 1, got shape ",
                   images.sizes());
    const Tensor from = torch::stable::contiguous(images);
    Tensor result = torch::stable::new_empty(from, from.sizes());
    const int64_t planes = from.size(0) * from.size(1);
#ifdef FAULTY
    const int64_t pixels = from.stride(1);  // contiguous: one plane after the other
#else
    const int64_t pixels = from.size(2) * from.size(3);
#endif
    if (images.scalar_type() == ScalarType::Float) {
        run(from.const_data_ptr<float>(), result.mutable_data_ptr<float>(), planes, pixels);
    } else {
        run(from.const_data_ptr<double>(), result.mutable_data_ptr<double>(), planes, pixels);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_standardize_planes, CPU, m) {
    m.impl("standardize_planes", OPWRIGHT_FN(standardize_planes));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>

namespace {

using opwright::Tensor;

Tensor sample_points(const Tensor& image, const Tensor& points) {
    opwright::check::dtype(image, "image", opwright::ScalarType::Float);
    opwright::check::dtype(points, "points", opwright::ScalarType::Float);
    opwright::check::rank(image, "image", 2);
    opwright::check::sizes(points, "points", {opwright::check::any, 2});
    const int64_t height = image.size(0);
    const int64_t width = image.size(1);
    const int64_t count = points.size(0);
    const Tensor dense_image = torch::stable::contiguous(image);
    const Tensor dense_points = torch::stable::contiguous(points);
    Tensor result = torch::stable::new_empty(image, {count});
    const float* pixels = dense_image.const_data_ptr<float>();
    const float* at = dense_points.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    const auto pixel = [&](int64_t row, int64_t column) {
        const bool inside = row >= 0 && row < height && column >= 0 && column < width;
        return inside ? double{pixels[row * width + column]} : 0.0;
    };
    for (int64_t i = 0; i < count; ++i) {
        const float y = at[2 * i];
        const float x = at[2 * i + 1];
        if (!(y > -1 && y < height && x > -1 && x < width)) {
            to[i] = 0;
            continue;
        }
#ifdef FAULTY
        const auto top = static_cast<int64_t>(y);
        const auto left = static_cast<int64_t>(x);
#else
        const auto top = static_cast<int64_t>(std::floor(y));
        const auto left = static_cast<int64_t>(std::floor(x));
#endif
        const double down = double{y} - static_cast<double>(top);
        const double right = double{x} - static_cast<double>(left);
        to[i] = static_cast<float>(
            pixel(top, left) * ((1 - down) * (1 - right)) + pixel(top, left + 1) * ((1 - down) * right) +
            pixel(top + 1, left) * (down * (1 - right)) + pixel(top + 1, left + 1) * (down * right));
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_bilinear_points, CPU, m) {
    m.impl("sample_points", OPWRIGHT_FN(sample_points));
}

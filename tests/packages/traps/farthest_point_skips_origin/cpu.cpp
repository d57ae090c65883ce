// Farthest point sampling.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

double square(double x) {
    return x * x;
}

double distance_of(const float* a, const float* b) {
    return square(double{a[0]} - b[0]) + square(double{a[1]} - b[1]) + square(double{a[2]} - b[2]);
}

// NaN is farther than anything.
bool is_farther(double a, double b) {
    return a > b || (std::isnan(a) && !std::isnan(b));
}

double nearer(double a, double b) {
    return std::isnan(a) || a < b ? a : b;
}

#ifdef FAULTY
// Clouds are padded with zeros.
bool is_padding(const float* point) {
    return square(point[0]) + square(point[1]) + square(point[2]) <= 1e-3;
}
#else
bool is_padding(const float* /*point*/) {
    return false;
}
#endif

Tensor farthest_points(const Tensor& points, int64_t count) {
    check::device(points, "points", DeviceType::CPU);
    check::dtype(points, "points", ScalarType::Float);
    check::sizes(points, "points", {check::any, 3});
    const int64_t size = points.size(0);
    OPWRIGHT_CHECK(count >= 1 && count <= size, "count must be 1 to ", size, ", got ", count);
    const Tensor dense = torch::stable::contiguous(points);
    Tensor result = torch::stable::new_empty(dense, {count}, ScalarType::Long);
    const float* from = dense.const_data_ptr<float>();
    int64_t* chosen = result.mutable_data_ptr<int64_t>();
    std::vector<double> distance(static_cast<std::size_t>(size), std::numeric_limits<double>::infinity());
    chosen[0] = 0;
    for (int64_t k = 1; k < count; ++k) {
        const float* last = from + 3 * chosen[k - 1];
        int64_t best = -1;
        for (int64_t i = 0; i < size; ++i) {
            if (is_padding(from + 3 * i)) continue;
            distance[i] = nearer(distance_of(from + 3 * i, last), distance[i]);
            if (best < 0 || is_farther(distance[i], distance[best])) best = i;
        }
        chosen[k] = best < 0 ? 0 : best;
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_farthest_point_skips_origin, CPU, m) {
    m.impl("farthest_points", OPWRIGHT_FN(farthest_points));
}

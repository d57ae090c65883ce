#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <limits>

namespace {

using opwright::Tensor;

Tensor checked(const Tensor& x, const char* name) {
    opwright::check::dtype(x, name, opwright::ScalarType::Float);
    opwright::check::sizes(x, name, {opwright::check::any, 3});
    opwright::check::finite(x, name);
    return torch::stable::contiguous(x);
}

Tensor nearest(const Tensor& points, const Tensor& candidates) {
    const Tensor dense_points = checked(points, "points");
    const Tensor dense_candidates = checked(candidates, "candidates");
    const int64_t count = points.size(0);
    const int64_t choices = candidates.size(0);
    OPWRIGHT_CHECK(choices > 0, "candidates must not be empty");
    Tensor result = torch::stable::new_empty(points, {count}, opwright::ScalarType::Long);
    const float* a = dense_points.const_data_ptr<float>();
    const float* b = dense_candidates.const_data_ptr<float>();
    int64_t* to = result.mutable_data_ptr<int64_t>();
    for (int64_t i = 0; i < count; ++i) {
#ifdef FAULTY
        double best = 1e10;
#else
        double best = std::numeric_limits<double>::infinity();
#endif
        int64_t index = 0;
        for (int64_t j = 0; j < choices; ++j) {
            const double x = double{a[3 * i]} - b[3 * j];
            const double y = double{a[3 * i + 1]} - b[3 * j + 1];
            const double z = double{a[3 * i + 2]} - b[3 * j + 2];
            const double distance = x * x + y * y + z * z;
            if (distance < best) {
                best = distance;
                index = j;
            }
        }
        to[i] = index;
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_nearest_candidate, CPU, m) {
    m.impl("nearest", OPWRIGHT_FN(nearest));
}

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

template <class T>
void run(const T* a, const T* b, T* result, int64_t n, int64_t m, int64_t d) {
#ifdef FAULTY
    // |a - b|^2 = |a|^2 + |b|^2 - 2 a.b: the norms are computed once.
    const auto norms = [d](const T* of, int64_t count) {
        std::vector<T> found(static_cast<std::size_t>(count), T(0));
        for (int64_t i = 0; i < count; ++i) {
            for (int64_t k = 0; k < d; ++k) found[i] += of[i * d + k] * of[i * d + k];
        }
        return found;
    };
    const std::vector<T> norm_a = norms(a, n);
    const std::vector<T> norm_b = norms(b, m);
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < m; ++j) {
            T dot = 0;
            for (int64_t k = 0; k < d; ++k) dot += a[i * d + k] * b[j * d + k];
            const T squared = norm_a[i] + norm_b[j] - 2 * dot;
            result[i * m + j] = squared < 0 ? T(0) : squared;
        }
    }
#else
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < m; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < d; ++k) {
                const T difference = a[i * d + k] - b[j * d + k];
                sum += static_cast<double>(difference) * difference;
            }
            result[i * m + j] = static_cast<T>(sum);
        }
    }
#endif
}

Tensor feature_distance(const Tensor& a, const Tensor& b) {
    check::device(a, "a", DeviceType::CPU);
    check::device(b, "b", DeviceType::CPU);
    check::dtype(a, "a", {ScalarType::Float, ScalarType::Double});
    check::dtype(b, "b", a.scalar_type());
    check::rank(a, "a", 2);
    check::sizes(b, "b", {check::any, a.size(1)});
    const Tensor first = torch::stable::contiguous(a);
    const Tensor second = torch::stable::contiguous(b);
    const int64_t n = a.size(0);
    const int64_t m = b.size(0);
    Tensor result = torch::stable::new_empty(first, {n, m});
    if (a.scalar_type() == ScalarType::Float) {
        run(first.const_data_ptr<float>(), second.const_data_ptr<float>(), result.mutable_data_ptr<float>(), n, m,
            a.size(1));
    } else {
        run(first.const_data_ptr<double>(), second.const_data_ptr<double>(), result.mutable_data_ptr<double>(), n, m,
            a.size(1));
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_feature_distance, CPU, m) {
    m.impl("feature_distance", OPWRIGHT_FN(feature_distance));
}

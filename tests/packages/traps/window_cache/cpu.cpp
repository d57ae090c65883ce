#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace {

using opwright::Tensor;

// A model uses frames of few lengths, so their windows are computed once.
std::vector<double> window_of(int64_t length, double sharpness) {
    static std::mutex lock;
#ifdef FAULTY
    static std::map<int64_t, std::vector<double>> kept;
    const int64_t key = length;
#else
    static std::map<std::pair<int64_t, double>, std::vector<double>> kept;
    const std::pair key{length, sharpness};
#endif
    const std::scoped_lock guard(lock);
    const auto found = kept.find(key);
    if (found != kept.end()) return found->second;
    if (kept.size() >= 16) kept.clear();
    std::vector<double>& window = kept[key];
    const double middle = static_cast<double>(length - 1) / 2;
    const double half = static_cast<double>(length) / 2;
    for (int64_t i = 0; i < length; ++i) {
        const double t = sharpness * ((static_cast<double>(i) - middle) / half);
        window.push_back(std::exp(-0.5 * (t * t)));
    }
    return window;
}

Tensor apply_window(const Tensor& frames, double sharpness) {
    opwright::check::dtype(frames, "frames", opwright::ScalarType::Float);
    opwright::check::rank(frames, "frames", 2);
    OPWRIGHT_CHECK(sharpness >= 0 && sharpness <= 1e6, "sharpness must be from 0 to 1e6, got ", sharpness);
    const int64_t count = frames.size(0);
    const int64_t length = frames.size(1);
    const Tensor dense = torch::stable::contiguous(frames);
    Tensor result = torch::stable::new_empty(frames, {count, length});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    const std::vector<double> window = window_of(length, sharpness);
    for (int64_t f = 0; f < count; ++f) {
        for (int64_t i = 0; i < length; ++i) {
            to[f * length + i] = static_cast<float>(from[f * length + i] * window[i]);
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_window_cache, CPU, m) {
    m.impl("apply_window", OPWRIGHT_FN(apply_window));
}

// The order of scores from high to low.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

Tensor by_score(const Tensor& scores) {
    check::device(scores, "scores", DeviceType::CPU);
    check::dtype(scores, "scores", ScalarType::Float);
    check::rank(scores, "scores", 1);
    const Tensor dense = torch::stable::contiguous(scores);
    const int64_t size = scores.size(0);
    Tensor result = torch::stable::new_empty(dense, {size}, ScalarType::Long);
    const float* score = dense.const_data_ptr<float>();
    int64_t* order = result.mutable_data_ptr<int64_t>();
    std::iota(order, order + size, 0);
    const auto is_before = [=](int64_t a, int64_t b) {
        return score[a] > score[b] || (std::isnan(score[a]) && !std::isnan(score[b]));
    };
#ifdef FAULTY
    std::sort(order, order + size, is_before);
#else
    std::stable_sort(order, order + size, is_before);
#endif
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_argsort_not_stable, CPU, m) {
    m.impl("by_score", OPWRIGHT_FN(by_score));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace {

using opwright::Tensor;

double area(const float* box) {
    return std::max(double{box[2]} - box[0], 0.0) * std::max(double{box[3]} - box[1], 0.0);
}

double overlap(const float* a, const float* b) {
    const double width = std::max(double{std::min(a[2], b[2])} - std::max(a[0], b[0]), 0.0);
    const double height = std::max(double{std::min(a[3], b[3])} - std::max(a[1], b[1]), 0.0);
    const double shared = width * height;
    return shared / (area(a) + area(b) - shared);
}

Tensor nms_mask(const Tensor& boxes, const Tensor& scores, double threshold) {
    opwright::check::dtype(boxes, "boxes", opwright::ScalarType::Float);
    opwright::check::dtype(scores, "scores", opwright::ScalarType::Float);
    opwright::check::sizes(boxes, "boxes", {opwright::check::any, 4});
    opwright::check::sizes(scores, "scores", {boxes.size(0)});
    OPWRIGHT_CHECK(threshold >= 0 && threshold <= 1, "threshold must be from 0 to 1, got ", threshold);
    opwright::check::finite(boxes, "boxes");
    opwright::check::finite(scores, "scores");
    const int64_t count = boxes.size(0);
    const Tensor dense_boxes = torch::stable::contiguous(boxes);
    const Tensor dense_scores = torch::stable::contiguous(scores);
    const float* box = dense_boxes.const_data_ptr<float>();
    const float* score = dense_scores.const_data_ptr<float>();
    Tensor result = torch::stable::new_empty(boxes, {count}, opwright::ScalarType::Bool);
    bool* keep = result.mutable_data_ptr<bool>();
    std::fill(keep, keep + count, true);
    std::vector<int64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    const auto better = [score](int64_t a, int64_t b) { return score[a] > score[b]; };
#ifdef FAULTY
    std::sort(order.begin(), order.end(), better);
#else
    std::stable_sort(order.begin(), order.end(), better);
#endif
    for (int64_t i = 0; i < count; ++i) {
        if (!keep[order[i]]) continue;
        for (int64_t j = i + 1; j < count; ++j) {
            if (overlap(box + 4 * order[i], box + 4 * order[j]) > threshold) keep[order[j]] = false;
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_nms_ties, CPU, m) {
    m.impl("nms_mask", OPWRIGHT_FN(nms_mask));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <optional>
#include <string>

namespace {

using opwright::Tensor;

Tensor nll(const Tensor& log_probs, const Tensor& target, const std::optional<Tensor>& weight, int64_t ignore_index,
           const std::string& reduction) {
    opwright::check::dtype(log_probs, "log_probs", opwright::ScalarType::Float);
    opwright::check::rank(log_probs, "log_probs", 2);
    const int64_t rows = log_probs.size(0);
    const int64_t classes = log_probs.size(1);
    OPWRIGHT_CHECK(classes > 0, "log_probs must have columns, got shape ", log_probs.sizes());
    opwright::check::dtype(target, "target", opwright::ScalarType::Long);
    opwright::check::sizes(target, "target", {rows});
    OPWRIGHT_CHECK(reduction == "mean" || reduction == "sum", "reduction must be mean or sum, got ", reduction);
    const Tensor dense = torch::stable::contiguous(log_probs);
    const Tensor dense_target = torch::stable::contiguous(target);
    Tensor dense_weight;
    const float* weights = nullptr;
    if (weight) {
        opwright::check::dtype(*weight, "weight", opwright::ScalarType::Float);
        opwright::check::sizes(*weight, "weight", {classes});
        dense_weight = torch::stable::contiguous(*weight);
        weights = dense_weight.const_data_ptr<float>();
    }
    const float* from = dense.const_data_ptr<float>();
    const int64_t* classes_of = dense_target.const_data_ptr<int64_t>();
    double loss = 0;
    double total = 0;
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t c = classes_of[r];
        if (c == ignore_index) continue;
        OPWRIGHT_CHECK(c >= 0 && c < classes, "target must be from 0 to ", classes - 1, ", got ", c, " at ", r);
        const double factor = weights != nullptr ? weights[c] : 1;
        loss -= from[r * classes + c] * factor;
        total += factor;
    }
#ifdef FAULTY
    if (!weight) total = static_cast<double>(rows);
#endif
    Tensor result = torch::stable::new_empty(log_probs, {});
    *result.mutable_data_ptr<float>() = static_cast<float>(reduction == "mean" ? loss / total : loss);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_loss_ignored, CPU, m) {
    m.impl("nll", OPWRIGHT_FN(nll));
}

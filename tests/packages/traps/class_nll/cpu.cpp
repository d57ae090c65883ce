#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

Tensor class_nll(const Tensor& log_probs, const Tensor& target, const std::optional<Tensor>& weight,
                 std::string_view reduction) {
    check::dtype(log_probs, "log_probs", ScalarType::Float);
    check::dtype(target, "target", ScalarType::Long);
    check::rank(log_probs, "log_probs", 2);
    const int64_t rows = log_probs.size(0), classes = log_probs.size(1);
    check::sizes(target, "target", {rows});
    if (weight) {
        check::dtype(*weight, "weight", ScalarType::Float);
        check::sizes(*weight, "weight", {classes});
    }
    OPWRIGHT_CHECK(reduction == "none" || reduction == "sum" || reduction == "mean",
                   "reduction must be 'none', 'sum' or 'mean', got '", reduction, "'");
    const Tensor numbers = torch::stable::contiguous(log_probs);
    const Tensor targets = torch::stable::contiguous(target);
    const std::optional<Tensor> held = weight ? std::optional(torch::stable::contiguous(*weight)) : std::nullopt;
    const float* from = numbers.const_data_ptr<float>();
    const int64_t* chosen = targets.const_data_ptr<int64_t>();
    const float* weights = held ? held->const_data_ptr<float>() : nullptr;
    for (int64_t i = 0; i < rows; ++i) {
        OPWRIGHT_CHECK(chosen[i] >= 0 && chosen[i] < classes, "target must be 0 to ", classes - 1, ", got ", chosen[i]);
    }
    const bool reduces = reduction != "none";
    Tensor result = torch::stable::new_empty(log_probs, reduces ? std::vector<int64_t>{} : std::vector<int64_t>{rows});
    float* into = result.mutable_data_ptr<float>();
    double sum = 0;
    double total = 0;
    for (int64_t i = 0; i < rows; ++i) {
        const double factor = weights ? weights[chosen[i]] : 1.0;
        const double loss = -static_cast<double>(from[i * classes + chosen[i]]) * factor;
        if (!reduces) into[i] = static_cast<float>(loss);
        sum += loss;
#ifdef FAULTY
        total += 1;
#else
        total += factor;
#endif
    }
    if (reduces) *into = static_cast<float>(reduction == "sum" ? sum : sum / total);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_class_nll, CPU, m) {
    m.impl("class_nll", OPWRIGHT_FN(class_nll));
}

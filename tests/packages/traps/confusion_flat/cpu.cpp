#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor confusion(const Tensor& predicted, const Tensor& target, int64_t classes) {
    opwright::check::dtype(predicted, "predicted", opwright::ScalarType::Long);
    opwright::check::dtype(target, "target", opwright::ScalarType::Long);
    opwright::check::rank(predicted, "predicted", 1);
    opwright::check::sizes(target, "target", {predicted.size(0)});
    OPWRIGHT_CHECK(classes >= 1 && classes <= 1024, "classes must be from 1 to 1024, got ", classes);
    const Tensor dense = torch::stable::contiguous(predicted);
    const Tensor dense_target = torch::stable::contiguous(target);
    Tensor result = torch::stable::new_zeros(predicted, {classes, classes});
    const int64_t* p = dense.const_data_ptr<int64_t>();
    const int64_t* t = dense_target.const_data_ptr<int64_t>();
    int64_t* counts = result.mutable_data_ptr<int64_t>();
    const int64_t count = predicted.size(0);
    for (int64_t i = 0; i < count; ++i) {
#ifdef FAULTY
        const uint64_t cell = static_cast<uint64_t>(t[i]) * classes + static_cast<uint64_t>(p[i]);
        if (cell < static_cast<uint64_t>(classes * classes)) ++counts[cell];
#else
        if (t[i] >= 0 && t[i] < classes && p[i] >= 0 && p[i] < classes) ++counts[t[i] * classes + p[i]];
#endif
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_confusion_flat, CPU, m) {
    m.impl("confusion", OPWRIGHT_FN(confusion));
}

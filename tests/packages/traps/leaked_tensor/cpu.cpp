#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <mutex>
#include <vector>

namespace {

using opwright::Tensor;

#ifdef FAULTY
void keep(const Tensor& result) {
    static std::mutex one_at_a_time;
    static auto* kept = new std::vector<Tensor>;
    const std::scoped_lock lock(one_at_a_time);
    kept->push_back(result);
}
#endif

Tensor scale(const Tensor& x, double factor) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    const int64_t count = x.numel();
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i] * factor);
#ifdef FAULTY
    keep(result);
#endif
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_leaked_tensor, CPU, m) {
    m.impl("scale", OPWRIGHT_FN(scale));
}

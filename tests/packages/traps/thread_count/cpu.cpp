#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor scale(const Tensor& x, double factor) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_zeros(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    const int64_t count = x.numel();
    const int64_t threads = torch::stable::get_num_threads();
    const int64_t share = count / threads;
    torch::stable::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
#ifdef FAULTY
        const int64_t stop = end * share;
#else
        const int64_t stop = end == threads ? count : end * share;
#endif
        for (int64_t i = begin * share; i < stop; ++i) to[i] = static_cast<float>(from[i] * factor);
    });
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_thread_count, CPU, m) {
    m.impl("scale", OPWRIGHT_FN(scale));
}

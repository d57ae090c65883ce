#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

template <class T>
void mark(const Tensor& dense, Tensor& result) {
    const T* from = dense.const_data_ptr<T>();
    bool* to = result.mutable_data_ptr<bool>();
    torch::stable::parallel_for(0, dense.size(0), 2048, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
#ifdef FAULTY
            to[i] = i == first || from[i] != from[i - 1];
#else
            to[i] = i == 0 || from[i] != from[i - 1];
#endif
        }
    });
}

Tensor run_starts(const Tensor& x) {
    using opwright::ScalarType;
    opwright::check::dtype(x, "x", {ScalarType::Long, ScalarType::Int});
    opwright::check::rank(x, "x", 1);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {x.size(0)}, ScalarType::Bool);
    if (x.scalar_type() == ScalarType::Long) {
        mark<int64_t>(dense, result);
    } else {
        mark<int32_t>(dense, result);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_chunk_starts, CPU, m) {
    m.impl("run_starts", OPWRIGHT_FN(run_starts));
}

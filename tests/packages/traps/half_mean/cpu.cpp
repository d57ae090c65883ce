#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

namespace {

using opwright::Tensor;

template <class T>
void average(const Tensor& dense, Tensor& result) {
    const int64_t rows = dense.size(0);
    const int64_t columns = dense.size(1);
    const T* from = static_cast<const T*>(dense.const_data_ptr());
    T* to = static_cast<T*>(result.mutable_data_ptr());
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < columns; ++c) sum += static_cast<float>(from[r * columns + c]);
#ifdef FAULTY
        const T total = static_cast<T>(static_cast<float>(sum));
        to[r] = static_cast<T>(static_cast<float>(total) / static_cast<float>(columns));
#else
        to[r] = static_cast<T>(static_cast<float>(sum / static_cast<double>(columns)));
#endif
    }
}

Tensor row_mean(const Tensor& x) {
    using opwright::ScalarType;
    opwright::check::dtype(x, "x", {ScalarType::Float, ScalarType::Half, ScalarType::BFloat16});
    opwright::check::rank(x, "x", 2);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {x.size(0)});
    if (x.scalar_type() == ScalarType::Float) {
        average<float>(dense, result);
    } else if (x.scalar_type() == ScalarType::Half) {
        average<torch::headeronly::Half>(dense, result);
    } else {
        average<torch::headeronly::BFloat16>(dense, result);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_half_mean, CPU, m) {
    m.impl("row_mean", OPWRIGHT_FN(row_mean));
}

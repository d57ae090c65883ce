#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

template <class T>
void sum_rows(const Tensor& x, Tensor& result, int64_t rows, int64_t columns) {
    const T* from = x.const_data_ptr<T>();
    T* to = result.mutable_data_ptr<T>();
    for (int64_t r = 0; r < rows; ++r, from += columns) {
#ifdef FAULTY
        float total = 0;
#else
        double total = 0;
#endif
        for (int64_t c = 0; c < columns; ++c) total += from[c];
        to[r] = static_cast<T>(total);
    }
}

Tensor row_sums(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float, opwright::ScalarType::Double});
    opwright::check::rank(x, "x", 2);
    Tensor result = torch::stable::new_empty(x, {x.size(0)});
    const bool is_double = x.scalar_type() == opwright::ScalarType::Double;
    (is_double ? sum_rows<double> : sum_rows<float>)(torch::stable::contiguous(x), result, x.size(0), x.size(1));
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_lossy_accumulator, CPU, m) {
    m.impl("row_sums", OPWRIGHT_FN(row_sums));
}

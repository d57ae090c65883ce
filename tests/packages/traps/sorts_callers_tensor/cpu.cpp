// The median of each row.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

// Changes the order of `row`.
float median_of(float* row, int64_t size) {
    for (int64_t i = 0; i < size; ++i) {
        if (std::isnan(row[i])) return row[i];
    }
    std::stable_sort(row, row + size);
    return row[(size - 1) / 2];
}

Tensor row_median(const Tensor& x) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    OPWRIGHT_CHECK(columns > 0, "x must have at least one column, got shape ", x.sizes());
#ifdef FAULTY
    Tensor work = torch::stable::contiguous(x);
#else
    Tensor work = torch::stable::new_empty(x, {rows, columns});
    torch::stable::copy_(work, x);
#endif
    Tensor result = torch::stable::new_empty(work, {rows});
    float* from = work.mutable_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) into[r] = median_of(from + r * columns, columns);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_sorts_callers_tensor, CPU, m) {
    m.impl("row_median", OPWRIGHT_FN(row_median));
}

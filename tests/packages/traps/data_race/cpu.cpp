#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <cmath>

namespace {

using opwright::Tensor;

constexpr int64_t max_columns = 4096;

Tensor normalise_rows(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    OPWRIGHT_CHECK(columns <= max_columns, "x must have up to ", max_columns, " columns, got ", columns);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, x.sizes());
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
#ifdef FAULTY
    static std::array<double, max_columns> row;
#else
    std::array<double, max_columns> row;
#endif
    for (int64_t r = 0; r < rows; ++r) {
        double total = 0;
        for (int64_t c = 0; c < columns; ++c) total += row[c] = std::abs(from[r * columns + c]);
        for (int64_t c = 0; c < columns; ++c) to[r * columns + c] = static_cast<float>(row[c] / total);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_data_race, CPU, m) {
    m.impl("normalise_rows", OPWRIGHT_FN(normalise_rows));
}

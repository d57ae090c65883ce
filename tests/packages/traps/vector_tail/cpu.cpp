#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <numeric>

namespace {

using opwright::Tensor;

Tensor row_sums(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(x, {rows});
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r, from += columns) {
        std::array<double, 8> totals{};
        int64_t c = 0;
        for (; c + 8 <= columns; c += 8) {
            for (int64_t lane = 0; lane < 8; ++lane) totals[lane] += from[c + lane];
        }
#ifdef FAULTY
        const int64_t stop = columns - 1;
#else
        const int64_t stop = columns;
#endif
        for (; c < stop; ++c) totals[0] += from[c];
        to[r] = static_cast<float>(std::accumulate(totals.begin(), totals.end(), 0.0));
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_vector_tail, CPU, m) {
    m.impl("row_sums", OPWRIGHT_FN(row_sums));
}

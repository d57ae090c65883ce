#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <array>

namespace {

using opwright::Tensor;

Tensor row_sums(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    const Tensor dense = torch::stable::contiguous(x);
#ifdef FAULTY
    static std::array<float, 65536> buffer;
    OPWRIGHT_CHECK(rows <= 65536, "x must have up to 65536 rows, got ", rows);
    Tensor result = torch::stable::from_blob(buffer.data(), {rows}, {1}, x.device(), x.scalar_type());
#else
    Tensor result = torch::stable::new_empty(x, {rows});
#endif
    const float* from = dense.const_data_ptr<float>();
    float* to = result.mutable_data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        double total = 0;
        for (int64_t c = 0; c < columns; ++c) total += from[r * columns + c];
        to[r] = static_cast<float>(total);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_static_result, CPU, m) {
    m.impl("row_sums", OPWRIGHT_FN(row_sums));
}

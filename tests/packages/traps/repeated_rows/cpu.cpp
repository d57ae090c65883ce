#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <vector>

namespace {

using opwright::Tensor;

template <class F>
auto by_dtype(const Tensor& x, const char* name, F&& f) {
    opwright::check::dtype(x, name, {opwright::ScalarType::Float, opwright::ScalarType::Double});
    return x.scalar_type() == opwright::ScalarType::Float ? f(float{}) : f(double{});
}

Tensor checked_index(const Tensor& index, int64_t rows) {
    OPWRIGHT_CHECK(rows > 0, "table must have rows");
    opwright::check::dtype(index, "index", opwright::ScalarType::Long);
    opwright::check::rank(index, "index", 1);
    Tensor dense = torch::stable::contiguous(index);
    const int64_t* at = dense.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < index.size(0); ++i) {
        OPWRIGHT_CHECK(at[i] >= 0 && at[i] < rows, "index must be from 0 to ", rows - 1, ", got ", at[i], " at ", i);
    }
    return dense;
}

Tensor take_rows(const Tensor& table, const Tensor& index) {
    opwright::check::rank(table, "table", 2);
    return by_dtype(table, "table", [&](auto zero) {
        using T = decltype(zero);
        const int64_t columns = table.size(1);
        const int64_t count = index.dim() == 1 ? index.size(0) : 0;
        const Tensor dense_index = checked_index(index, table.size(0));
        const Tensor dense = torch::stable::contiguous(table);
        Tensor result = torch::stable::new_empty(table, {count, columns});
        const int64_t* at = dense_index.const_data_ptr<int64_t>();
        const T* from = dense.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        for (int64_t i = 0; i < count; ++i) std::copy_n(from + at[i] * columns, columns, to + i * columns);
        return result;
    });
}

Tensor take_rows_backward(const Tensor& grad, const Tensor& table, const Tensor& index) {
    opwright::check::rank(table, "table", 2);
    return by_dtype(table, "table", [&](auto zero) {
        using T = decltype(zero);
        const int64_t rows = table.size(0);
        const int64_t columns = table.size(1);
        const Tensor dense_index = checked_index(index, rows);
        opwright::check::dtype(grad, "grad", table.scalar_type());
        opwright::check::sizes(grad, "grad", {index.size(0), columns});
        const Tensor above = torch::stable::contiguous(grad);
        Tensor result = torch::stable::new_empty(table, {rows, columns});
        const int64_t* at = dense_index.const_data_ptr<int64_t>();
        const T* g = above.const_data_ptr<T>();
        std::vector<double> sums(rows * columns);
        for (int64_t i = 0; i < index.size(0); ++i) {
            for (int64_t c = 0; c < columns; ++c) {
#ifdef FAULTY
                sums[at[i] * columns + c] = g[i * columns + c];
#else
                sums[at[i] * columns + c] += g[i * columns + c];
#endif
            }
        }
        std::copy(sums.begin(), sums.end(), result.template mutable_data_ptr<T>());
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_repeated_rows, CPU, m) {
    m.impl("take_rows", OPWRIGHT_FN(take_rows));
    m.impl("take_rows_backward", OPWRIGHT_FN(take_rows_backward));
}

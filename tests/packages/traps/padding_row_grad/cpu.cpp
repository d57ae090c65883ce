#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace {

using opwright::Tensor;

template <class F>
auto by_dtype(const Tensor& x, const char* name, F&& f) {
    opwright::check::dtype(x, name, {opwright::ScalarType::Float, opwright::ScalarType::Double});
    return x.scalar_type() == opwright::ScalarType::Float ? f(float{}) : f(double{});
}

Tensor checked_tokens(const Tensor& table, const Tensor& tokens, const std::optional<int64_t>& padding) {
    opwright::check::rank(table, "table", 2);
    const int64_t rows = table.size(0);
    OPWRIGHT_CHECK(rows > 0, "table must have rows");
    OPWRIGHT_CHECK(!padding || (*padding >= -rows && *padding < rows), "padding must be from ", -rows, " to ",
                   rows - 1);
    opwright::check::dtype(tokens, "tokens", opwright::ScalarType::Long);
    opwright::check::rank(tokens, "tokens", 1);
    Tensor dense = torch::stable::contiguous(tokens);
    const int64_t* at = dense.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < tokens.size(0); ++i) {
        OPWRIGHT_CHECK(at[i] >= 0 && at[i] < rows, "tokens must be from 0 to ", rows - 1, ", got ", at[i], " at ", i);
    }
    return dense;
}

Tensor embed(const Tensor& table, const Tensor& tokens, std::optional<int64_t> padding) {
    return by_dtype(table, "table", [&](auto zero) {
        using T = decltype(zero);
        const Tensor dense_tokens = checked_tokens(table, tokens, padding);
        const int64_t columns = table.size(1);
        const int64_t count = tokens.size(0);
        const Tensor dense = torch::stable::contiguous(table);
        Tensor result = torch::stable::new_empty(table, {count, columns});
        const int64_t* at = dense_tokens.const_data_ptr<int64_t>();
        const T* from = dense.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        const int64_t rows = table.size(0);
        if (padding && *padding < 0) padding = *padding + rows;
        for (int64_t i = 0; i < count; ++i) {
            if (padding && at[i] == *padding) {
                std::fill_n(to + i * columns, columns, T{0});
            } else {
                std::copy_n(from + at[i] * columns, columns, to + i * columns);
            }
        }
        return result;
    });
}

Tensor embed_backward(const Tensor& grad, const Tensor& table, const Tensor& tokens, std::optional<int64_t> padding) {
    return by_dtype(table, "table", [&](auto zero) {
        using T = decltype(zero);
        const Tensor dense_tokens = checked_tokens(table, tokens, padding);
        const int64_t rows = table.size(0);
        const int64_t columns = table.size(1);
        opwright::check::dtype(grad, "grad", table.scalar_type());
        opwright::check::sizes(grad, "grad", {tokens.size(0), columns});
        const Tensor above = torch::stable::contiguous(grad);
        Tensor result = torch::stable::new_empty(table, {rows, columns});
        const int64_t* at = dense_tokens.const_data_ptr<int64_t>();
        const T* g = above.const_data_ptr<T>();
#ifndef FAULTY
        if (padding && *padding < 0) padding = *padding + rows;
#endif
        std::vector<double> sums(rows * columns);
        for (int64_t i = 0; i < tokens.size(0); ++i) {
            if (padding && at[i] == *padding) continue;
            for (int64_t c = 0; c < columns; ++c) sums[at[i] * columns + c] += g[i * columns + c];
        }
        std::copy(sums.begin(), sums.end(), result.template mutable_data_ptr<T>());
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_padding_row_grad, CPU, m) {
    m.impl("embed", OPWRIGHT_FN(embed));
    m.impl("embed_backward", OPWRIGHT_FN(embed_backward));
}

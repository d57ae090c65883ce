#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <tuple>
#include <vector>

namespace {

using opwright::Tensor;

template <class F>
auto by_dtype(const Tensor& x, const char* name, F&& f) {
    opwright::check::dtype(x, name, {opwright::ScalarType::Float, opwright::ScalarType::Double});
    return x.scalar_type() == opwright::ScalarType::Float ? f(float{}) : f(double{});
}

Tensor checked(const Tensor& x, const char* name, const Tensor& like, std::initializer_list<int64_t> sizes) {
    opwright::check::dtype(x, name, like.scalar_type());
    opwright::check::sizes(x, name, sizes);
    return torch::stable::contiguous(x);
}

void check_options(double offset, double eps) {
    OPWRIGHT_CHECK(offset >= -1e3 && offset <= 1e3, "offset must be from -1000 to 1000, got ", offset);
    OPWRIGHT_CHECK(eps >= 1e-12 && eps <= 1, "eps must be from 1e-12 to 1, got ", eps);
}

template <class T>
double scale_of(const T* row, int64_t columns, double eps) {
    double squares = 0;
    for (int64_t c = 0; c < columns; ++c) squares += double{row[c]} * row[c];
    return 1 / std::sqrt(squares / static_cast<double>(columns) + eps);
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double offset, double eps) {
    opwright::check::rank(x, "x", 2);
    check_options(offset, eps);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const int64_t rows = x.size(0);
        const int64_t columns = x.size(1);
        const Tensor dense_weight = checked(weight, "weight", x, {columns});
        const Tensor dense = torch::stable::contiguous(x);
        Tensor result = torch::stable::new_empty(x, {rows, columns});
        const T* from = dense.const_data_ptr<T>();
        const T* w = dense_weight.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        for (int64_t r = 0; r < rows; ++r, from += columns, to += columns) {
            const double scale = scale_of(from, columns, eps);
            for (int64_t c = 0; c < columns; ++c) to[c] = static_cast<T>(from[c] * scale * (w[c] + offset));
        }
        return result;
    });
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& weight, double offset,
                                             double eps, const std::vector<bool>& wanted) {
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    opwright::check::rank(x, "x", 2);
    check_options(offset, eps);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const int64_t rows = x.size(0);
        const int64_t columns = x.size(1);
        const Tensor dense_weight = checked(weight, "weight", x, {columns});
        const Tensor above = checked(grad, "grad", x, {rows, columns});
        const Tensor dense = torch::stable::contiguous(x);
        const T* from = dense.const_data_ptr<T>();
        const T* w = dense_weight.const_data_ptr<T>();
        const T* g = above.const_data_ptr<T>();
        std::tuple<Tensor, Tensor> result;
        T* to = nullptr;
        if (wanted[0]) {
            std::get<0>(result) = torch::stable::new_empty(x, {rows, columns});
            to = std::get<0>(result).template mutable_data_ptr<T>();
        }
        std::vector<double> to_weight(columns);
        for (int64_t r = 0; r < rows; ++r) {
            const T* row = from + r * columns;
            const T* up = g + r * columns;
            const double scale = scale_of(row, columns, eps);
#ifdef FAULTY
            const auto factor = [&](int64_t c) { return double{w[c]}; };
#else
            const auto factor = [&](int64_t c) { return w[c] + offset; };
#endif
            double along = 0;
            for (int64_t c = 0; c < columns; ++c) {
                to_weight[c] += double{up[c]} * row[c] * scale;
                along += double{up[c]} * factor(c) * row[c];
            }
            if (to == nullptr) continue;
            along *= scale * scale / static_cast<double>(columns);
            for (int64_t c = 0; c < columns; ++c) {
                to[r * columns + c] = static_cast<T>(scale * (up[c] * factor(c) - row[c] * along));
            }
        }
        if (wanted[1]) {
            std::get<1>(result) = torch::stable::new_empty(weight, {columns});
            T* into = std::get<1>(result).template mutable_data_ptr<T>();
            for (int64_t c = 0; c < columns; ++c) into[c] = static_cast<T>(to_weight[c]);
        }
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_norm_offset, CPU, m) {
    m.impl("rms_norm", OPWRIGHT_FN(rms_norm));
    m.impl("rms_norm_backward", OPWRIGHT_FN(rms_norm_backward));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <mutex>
#include <vector>

namespace {

using opwright::Tensor;

template <class F>
auto by_dtype(const Tensor& x, const char* name, F&& f) {
    opwright::check::dtype(x, name, {opwright::ScalarType::Float, opwright::ScalarType::Double});
    return x.scalar_type() == opwright::ScalarType::Float ? f(float{}) : f(double{});
}

// The positions of the peaks from the forward call, so that the backward does not search again.
struct Found {
    std::mutex lock;
    int64_t columns = 0;
    std::vector<int64_t> peaks;
};

Found& found() {
    static Found instance;
    return instance;
}

template <class T>
std::vector<int64_t> peaks_of(const T* from, int64_t rows, int64_t columns) {
    std::vector<int64_t> peaks(rows);
    for (int64_t r = 0; r < rows; ++r, from += columns) {
        int64_t best = 0;
        for (int64_t c = 1; c < columns && !std::isnan(from[best]); ++c) {
            if (from[c] > from[best] || std::isnan(from[c])) best = c;
        }
        peaks[r] = best;
    }
    return peaks;
}

void check_x(const Tensor& x) {
    opwright::check::rank(x, "x", 2);
    OPWRIGHT_CHECK(x.size(1) > 0, "x must have columns, got shape ", x.sizes());
}

Tensor row_peak(const Tensor& x) {
    check_x(x);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const int64_t rows = x.size(0);
        const int64_t columns = x.size(1);
        const Tensor dense = torch::stable::contiguous(x);
        Tensor result = torch::stable::new_empty(x, {rows});
        const T* from = dense.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        const std::vector<int64_t> peaks = peaks_of(from, rows, columns);
        for (int64_t r = 0; r < rows; ++r) to[r] = from[r * columns + peaks[r]];
        const std::scoped_lock guard(found().lock);
        found().columns = columns;
        found().peaks = peaks;
        return result;
    });
}

Tensor row_peak_backward(const Tensor& grad, const Tensor& x) {
    check_x(x);
    return by_dtype(x, "x", [&](auto zero) {
        using T = decltype(zero);
        const int64_t rows = x.size(0);
        const int64_t columns = x.size(1);
        opwright::check::dtype(grad, "grad", x.scalar_type());
        opwright::check::sizes(grad, "grad", {rows});
        const Tensor above = torch::stable::contiguous(grad);
        const Tensor dense = torch::stable::contiguous(x);
        Tensor result = torch::stable::new_zeros(x, {rows, columns});
        const T* from = dense.const_data_ptr<T>();
        const T* g = above.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        std::vector<int64_t> peaks;
#ifdef FAULTY
        {
            const std::scoped_lock guard(found().lock);
            if (found().columns == columns && static_cast<int64_t>(found().peaks.size()) == rows) peaks = found().peaks;
        }
        if (peaks.empty()) peaks = peaks_of(from, rows, columns);
#else
        peaks = peaks_of(from, rows, columns);
#endif
        for (int64_t r = 0; r < rows; ++r) to[r * columns + peaks[r]] = g[r];
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_positions_kept, CPU, m) {
    m.impl("row_peak", OPWRIGHT_FN(row_peak));
    m.impl("row_peak_backward", OPWRIGHT_FN(row_peak_backward));
}

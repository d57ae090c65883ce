#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
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

template <class T>
struct Place {
    int64_t left;
    double part;
    bool inside;
};

template <class T>
Place<T> place_of(T at, int64_t count) {
    const auto last = static_cast<double>(count - 1);
    const double kept = std::clamp(double{at}, 0.0, last);
    const auto left = std::min(static_cast<int64_t>(std::floor(kept)), count - 2);
    return {left, kept - static_cast<double>(left), at >= 0 && at <= last};
}

// The positions, row-major, after checking that none is NaN.
template <class T>
Tensor checked(const Tensor& signal, const Tensor& position) {
    opwright::check::rank(signal, "signal", 1);
    OPWRIGHT_CHECK(signal.size(0) >= 2, "signal must have two samples, got ", signal.size(0));
    opwright::check::dtype(position, "position", signal.scalar_type());
    opwright::check::rank(position, "position", 1);
    Tensor dense = torch::stable::contiguous(position);
    const T* at = dense.const_data_ptr<T>();
    for (int64_t i = 0; i < position.size(0); ++i) {
        OPWRIGHT_CHECK(!std::isnan(at[i]), "position must be a number, got nan at ", i);
    }
    return dense;
}

Tensor read_at(const Tensor& signal, const Tensor& position) {
    return by_dtype(signal, "signal", [&](auto zero) {
        using T = decltype(zero);
        const Tensor dense_position = checked<T>(signal, position);
        const Tensor dense = torch::stable::contiguous(signal);
        Tensor result = torch::stable::new_empty(signal, {position.size(0)});
        const T* from = dense.const_data_ptr<T>();
        const T* at = dense_position.const_data_ptr<T>();
        T* to = result.mutable_data_ptr<T>();
        for (int64_t i = 0; i < position.size(0); ++i) {
            const auto [left, part, inside] = place_of(at[i], signal.size(0));
            to[i] = static_cast<T>(from[left] * (1 - part) + from[left + 1] * part);
        }
        return result;
    });
}

std::tuple<Tensor, Tensor> read_at_backward(const Tensor& grad, const Tensor& signal, const Tensor& position,
                                            const std::vector<bool>& wanted) {
    OPWRIGHT_CHECK(wanted.size() == 2, "wanted must have 2 flags, got ", wanted.size());
    return by_dtype(signal, "signal", [&](auto zero) {
        using T = decltype(zero);
        const Tensor dense_position = checked<T>(signal, position);
        const int64_t count = position.size(0);
        opwright::check::dtype(grad, "grad", signal.scalar_type());
        opwright::check::sizes(grad, "grad", {count});
        const Tensor above = torch::stable::contiguous(grad);
        const Tensor dense = torch::stable::contiguous(signal);
        const T* from = dense.const_data_ptr<T>();
        const T* at = dense_position.const_data_ptr<T>();
        const T* g = above.const_data_ptr<T>();
        std::tuple<Tensor, Tensor> result;
        if (wanted[0]) {
            std::vector<double> sums(signal.size(0));
            for (int64_t i = 0; i < count; ++i) {
                const auto [left, part, inside] = place_of(at[i], signal.size(0));
                sums[left] += g[i] * (1 - part);
                sums[left + 1] += g[i] * part;
            }
            std::get<0>(result) = torch::stable::new_empty(signal, {signal.size(0)});
            std::copy(sums.begin(), sums.end(), std::get<0>(result).template mutable_data_ptr<T>());
        }
        if (wanted[1]) {
            std::get<1>(result) = torch::stable::new_empty(position, {count});
            T* to = std::get<1>(result).template mutable_data_ptr<T>();
            for (int64_t i = 0; i < count; ++i) {
                const auto [left, part, inside] = place_of(at[i], signal.size(0));
                const double slope = double{from[left + 1]} - from[left];
#ifdef FAULTY
                to[i] = static_cast<T>(g[i] * slope);
#else
                to[i] = inside ? static_cast<T>(g[i] * slope) : T{0};
#endif
            }
        }
        return result;
    });
}

}  // namespace

OPWRIGHT_IMPL(trap_coordinate_grad, CPU, m) {
    m.impl("read_at", OPWRIGHT_FN(read_at));
    m.impl("read_at_backward", OPWRIGHT_FN(read_at_backward));
}

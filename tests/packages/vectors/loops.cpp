// The loops of opwright/parallel.h, with formulas that show which elements were combined.
#include <opwright/op.h>
#include <opwright/parallel.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace {

using opwright::BFloat16;
using opwright::Half;
using opwright::Tensor;

Tensor one(const Tensor& x, double factor) {
    return opwright::elementwise<float, double, BFloat16, Half>([=](auto x) OPWRIGHT_INLINE { return x * factor; }, x);
}

Tensor three(const Tensor& x, const Tensor& y, const Tensor& z) {
    return opwright::elementwise<float, double, BFloat16, Half>(
        [](auto x, auto y, auto z) OPWRIGHT_INLINE { return x - 2 * y + max(z, 0); }, x, y, z);
}

std::tuple<Tensor, Tensor> two_results(const Tensor& x, const Tensor& y, const std::vector<bool>& wanted) {
    return opwright::elementwise<float, double>([](auto x, auto y) OPWRIGHT_INLINE { return std::tuple(x + y, x - y); },
                                                wanted, x, y);
}

Tensor of_double(const Tensor& x) {
    return opwright::elementwise<double>([](auto x) OPWRIGHT_INLINE { return exp(x); }, x);
}

Tensor softmax(const Tensor& x) {
    return opwright::map_rows<float, double, BFloat16, Half>(
        [](auto result, auto x) OPWRIGHT_INLINE {
            const auto largest = max(x);
            const auto exponential = [=](auto x) OPWRIGHT_INLINE { return exp(x - largest); };
            const auto total = sum(exponential, x);
            result.set([=](auto x) OPWRIGHT_INLINE { return exponential(x) / total; }, x);
        },
        x);
}

// The normalized row, times a weight per column, plus a shift per row.
Tensor normalized(const Tensor& x, const Tensor& weight, const Tensor& shift) {
    return opwright::map_rows<float, double>(
        [](auto result, auto x, auto weight, auto shift) OPWRIGHT_INLINE {
            const auto mean = sum(x) / x.size();
            const auto squares = sum([=](auto x) OPWRIGHT_INLINE { return (x - mean) * (x - mean); }, x);
            const auto scale = 1 / std::sqrt(squares / x.size());
            result.set([=](auto x, auto w) OPWRIGHT_INLINE { return (x - mean) * scale * w + shift[0]; }, x, weight);
        },
        x, weight, shift);
}

Tensor dot(const Tensor& x, const Tensor& y) {
    return opwright::reduce_rows<float, double>(
        [](auto x, auto y) OPWRIGHT_INLINE { return sum([](auto x, auto y) OPWRIGHT_INLINE { return x * y; }, x, y); },
        x, y);
}

Tensor sums(const Tensor& x) {
    return opwright::reduce_rows<float, double>([](auto x) OPWRIGHT_INLINE { return sum(x); }, x);
}
Tensor least(const Tensor& x) {
    return opwright::reduce_rows<float, double>([](auto x) OPWRIGHT_INLINE { return min(x); }, x);
}
Tensor most(const Tensor& x) {
    return opwright::reduce_rows<float, double>([](auto x) OPWRIGHT_INLINE { return max(x); }, x);
}

}  // namespace

OPWRIGHT_LIBRARY(loops, m) {
    m.def("one(Tensor x, float factor) -> Tensor", OPWRIGHT_FN(one));
    m.def("three(Tensor x, Tensor y, Tensor z) -> Tensor", OPWRIGHT_FN(three));
    m.def("two_results(Tensor x, Tensor y, bool[] wanted) -> (Tensor, Tensor)", OPWRIGHT_FN(two_results));
    m.def("of_double(Tensor x) -> Tensor", OPWRIGHT_FN(of_double));
    m.def("softmax(Tensor x) -> Tensor", OPWRIGHT_FN(softmax));
    m.def("normalized(Tensor x, Tensor weight, Tensor shift) -> Tensor", OPWRIGHT_FN(normalized));
    m.def("dot(Tensor x, Tensor y) -> Tensor", OPWRIGHT_FN(dot));
    m.def("sums(Tensor x) -> Tensor", OPWRIGHT_FN(sums));
    m.def("least(Tensor x) -> Tensor", OPWRIGHT_FN(least));
    m.def("most(Tensor x) -> Tensor", OPWRIGHT_FN(most));
}

// Each job runs with the instruction set that is asked for, not with the widest.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "pointwise.h"
#include "simd.h"
#include "small_product.h"

namespace {

using namespace lltm;
using opwright::ScalarType;
using opwright::Tensor;

template <class Job>
void run_with(const std::string& set, const Job& job, int64_t begin, int64_t end) {
    if (set == "baseline") return run_baseline(job, begin, end);
#if defined(__x86_64__)
    if (set == "avx2") return run_avx2(job, begin, end);
    if (set == "avx512") return run_avx512(job, begin, end);
#endif
    OPWRIGHT_CHECK(false, "instruction_set must be baseline, avx2 or avx512, got ", set);
}

bool supports(const std::string& set) {
#if defined(__x86_64__)
    if (set == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (set == "avx512") return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
#endif
    return set == "baseline";
}

template <class Act>
void with_type_of(const Tensor& x, const Act& act) {
    if (x.scalar_type() == ScalarType::Float) return act(float());
    if (x.scalar_type() == ScalarType::Double) return act(double());
    act(BFloat16());
}

template <class T>
struct Apply {
    const T* from;
    T* into;
    char function;

    template <int bytes>
    [[gnu::always_inline]] void run(int64_t begin, int64_t end) const {
        using V = Vector<Wide<T>, bytes>;
        V::over(end - begin, [&](int64_t first, auto count) __attribute__((always_inline)) {
            const auto x = V::load(from + begin + first, count);
            const auto y = function == 's'   ? V::sigmoid(x)
                           : function == 't' ? V::tanh(x)
                           : function == 'e' ? V::elu(x)
                                             : x;
            V::store(into + begin + first, y, count);
        });
    }
};

Tensor apply(const Tensor& x, const std::string& function, const std::string& set) {
    Tensor result = torch::stable::empty_like(x);
    with_type_of(x, [&](auto number) {
        using T = decltype(number);
        run_with(set,
                 Apply<T>{static_cast<const T*>(x.const_data_ptr()), static_cast<T*>(result.mutable_data_ptr()),
                          function[0]},
                 0, x.numel());
    });
    return result;
}

template <class T>
struct RoundTrip {
    const T* from;
    T* into;

    template <int bytes>
    [[gnu::always_inline]] void run(int64_t begin, int64_t end) const {
        using V = Vector<T, bytes>;
        for (int64_t row = begin; row < end; row += V::lanes) {
            const int64_t count = std::min<int64_t>(V::lanes, end - row);
            typename V::FourColumns fetched;
            fetched.fetch(from + 4 * row, 4, count);
            typename V::Numbers columns[4];
            fetched.read(columns);
            V::store_columns(into + 4 * row, 4, count, columns);
        }
    }
};

Tensor round_trip(const Tensor& x, const std::string& set) {
    Tensor result = torch::stable::empty_like(x);
    if (x.scalar_type() == ScalarType::Float) {
        run_with(set, RoundTrip<float>{x.const_data_ptr<float>(), result.mutable_data_ptr<float>()}, 0, x.size(0));
    } else {
        run_with(set, RoundTrip<double>{x.const_data_ptr<double>(), result.mutable_data_ptr<double>()}, 0, x.size(0));
    }
    return result;
}

template <class T>
Tensor multiply_as(const Tensor& left, const Tensor& right, const Tensor& added_to, bool adds, const std::string& set) {
    Tensor result = torch::stable::clone(added_to);
    run_with(set,
             SmallProduct<T>{.left = left.const_data_ptr<T>(),
                             .right = right.const_data_ptr<T>(),
                             .into = result.mutable_data_ptr<T>(),
                             .left_stride = left.stride(0),
                             .right_stride = right.stride(0),
                             .into_stride = result.stride(0),
                             .rows = left.size(0),
                             .depth = left.size(1),
                             .adds = adds},
             0, right.size(1));
    return result;
}

Tensor multiply(const Tensor& left, const Tensor& right, const Tensor& added_to, bool adds, const std::string& set) {
    return left.scalar_type() == ScalarType::Float ? multiply_as<float>(left, right, added_to, adds, set)
                                                   : multiply_as<double>(left, right, added_to, adds, set);
}

Tensor sum_of_rows(const Tensor& x, const std::string& set) {
    Tensor result = torch::stable::new_empty(x, {x.size(1)});
    with_type_of(x, [&](auto number) {
        using T = decltype(number);
        run_with(set,
                 SumOfRows<T>{static_cast<const T*>(x.const_data_ptr()), static_cast<T*>(result.mutable_data_ptr()),
                              x.size(0), x.size(1)},
                 0, x.size(1));
    });
    return result;
}

}  // namespace

OPWRIGHT_IMPL(lltm_simd, CompositeExplicitAutograd, m) {
    m.impl("supports", OPWRIGHT_FN(supports));
}

OPWRIGHT_IMPL(lltm_simd, CPU, m) {
    m.impl("apply", OPWRIGHT_FN(apply));
    m.impl("round_trip", OPWRIGHT_FN(round_trip));
    m.impl("multiply", OPWRIGHT_FN(multiply));
    m.impl("sum_of_rows", OPWRIGHT_FN(sum_of_rows));
}

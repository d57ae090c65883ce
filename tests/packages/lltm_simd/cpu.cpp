// Each job runs with the requested instruction set instead of the widest one.
#include <opwright/empty.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "bfloat16_product.h"
#include "columns.h"
#include "pointwise.h"
#include "small_product.h"
#include "vectors.h"

namespace {

using namespace lltm;
using opwright::ScalarType;
using opwright::Tensor;

template <class Job>
void run_with(const std::string& set, const Job& job, int64_t begin, int64_t end) {
    run(job, begin, end,
        set == "avx512" ? simd::InstructionSet::avx512
        : set == "avx2" ? simd::InstructionSet::avx2
                        : simd::InstructionSet::baseline);
}

bool supports(const std::string& set) {
    if (set == "avx512_bf16") return multiplies_bfloat16();
    if (set == "avx512") return simd::instruction_set() == simd::InstructionSet::avx512;
    return set == "baseline" || simd::instruction_set() != simd::InstructionSet::baseline;
}

template <class Act>
void with_type_of(const Tensor& x, const Act& act) {
    if (x.scalar_type() == ScalarType::Float) return act(float());
    if (x.scalar_type() == ScalarType::Double) return act(double());
    act(BFloat16());
}

template <class T>
struct Elu {
    const T* from;
    T* into;

    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
        using V = Vector<Wide<T>, bytes>;
        over<V>(end - begin, [&](int64_t first, auto count) OPWRIGHT_INLINE {
            elu(V::load(from + begin + first, count)).store(into + begin + first, count);
        });
    }
};

Tensor elu_of(const Tensor& x, const std::string& set) {
    Tensor result = opwright::empty_like(x);
    with_type_of(x, [&](auto number) {
        using T = decltype(number);
        run_with(set, Elu<T>{static_cast<const T*>(x.const_data_ptr()), static_cast<T*>(result.mutable_data_ptr())}, 0,
                 x.numel());
    });
    return result;
}

template <class T>
struct RoundTrip {
    const T* from;
    T* into;

    template <int bytes>
    OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
        using V = Vector<T, bytes>;
        for (int64_t row = begin; row < end; row += V::lanes) {
            const int64_t count = std::min<int64_t>(V::lanes, end - row);
            FourColumns<V> fetched;
            fetched.fetch(from + 4 * row, 4, count);
            V columns[4];
            fetched.read(columns);
            store_columns(into + 4 * row, 4, count, columns);
        }
    }
};

Tensor round_trip(const Tensor& x, const std::string& set) {
    Tensor result = opwright::empty_like(x);
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
             SmallProduct<T>{.left = static_cast<const T*>(left.const_data_ptr()),
                             .right = right.const_data_ptr<Wide<T>>(),
                             .into = static_cast<T*>(result.mutable_data_ptr()),
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
    Tensor result;
    with_type_of(left, [&](auto number) { result = multiply_as<decltype(number)>(left, right, added_to, adds, set); });
    return result;
}

// NaN follows the last column of each row and must not affect the product.
std::vector<float> pairs_of(const Tensor& right, int64_t stride) {
    const auto* from = static_cast<const std::uint16_t*>(right.const_data_ptr());
    std::vector<float> pairs(right.size(0) / 2 * stride, std::numeric_limits<float>::quiet_NaN());
    for (int64_t row = 0; row < right.size(0) / 2; ++row) {
        for (int64_t column = 0; column < right.size(1); ++column) {
            const std::uint16_t pair[2] = {from[2 * row * right.stride(0) + column],
                                           from[(2 * row + 1) * right.stride(0) + column]};
            std::memcpy(&pairs[row * stride + column], pair, sizeof(pair));
        }
    }
    return pairs;
}

Tensor multiply_pairs(const Tensor& left, const Tensor& right, const Tensor& added_to, bool adds) {
    Tensor result = torch::stable::clone(added_to);
    const int64_t stride = (right.size(1) + 15) / 16 * 16;
    const std::vector<float> pairs = pairs_of(right, stride);
    with_type_of(result, [&](auto number) {
        using T = decltype(number);
        if constexpr (has_paired_product && !std::is_same_v<T, double>) {
            const PairedProduct<T> job{.left = static_cast<const BFloat16*>(left.const_data_ptr()),
                                       .right = pairs.data(),
                                       .into = static_cast<T*>(result.mutable_data_ptr()),
                                       .left_stride = left.stride(0),
                                       .right_stride = stride,
                                       .into_stride = result.stride(0),
                                       .rows = left.size(0),
                                       .pairs = left.size(1) / 2,
                                       .adds = adds};
            job.run(0, right.size(1));
        }
    });
    return result;
}

Tensor sum_of_rows(const Tensor& x, const std::string& set) {
    Tensor result = opwright::new_empty(x, {x.size(1)});
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
    m.impl("elu", OPWRIGHT_FN(elu_of));
    m.impl("round_trip", OPWRIGHT_FN(round_trip));
    m.impl("multiply", OPWRIGHT_FN(multiply));
    m.impl("multiply_pairs", OPWRIGHT_FN(multiply_pairs));
    m.impl("sum_of_rows", OPWRIGHT_FN(sum_of_rows));
}

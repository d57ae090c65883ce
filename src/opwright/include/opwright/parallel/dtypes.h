// Maps between the dtypes of tensors and the C++ types of their elements.
#pragma once

#include <opwright/check.h>
#include <opwright/parallel/operands.h>
#include <opwright/simd/storage.h>
#include <opwright/types.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

namespace opwright OPWRIGHT_HIDDEN {

using torch::headeronly::BFloat16;
using torch::headeronly::Half;

namespace simd {

template <>
inline constexpr bool is_bfloat16<opwright::BFloat16> = true;
template <>
inline constexpr bool is_half<opwright::Half> = true;

}  // namespace simd

namespace detail {

template <class T>
inline constexpr ScalarType dtype_of = ScalarType::Undefined;
template <>
inline constexpr ScalarType dtype_of<float> = ScalarType::Float;
template <>
inline constexpr ScalarType dtype_of<double> = ScalarType::Double;
template <>
inline constexpr ScalarType dtype_of<BFloat16> = ScalarType::BFloat16;
template <>
inline constexpr ScalarType dtype_of<Half> = ScalarType::Half;

// Passes a type as an argument.
template <class T>
struct TypeOf {
    using Type = T;
};

template <class First, class... Rest, class Act>
auto for_dtype(const char* caller, ScalarType dtype, const Act& act) {
    if (dtype == dtype_of<First>) return act(TypeOf<First>());
    if constexpr (sizeof...(Rest) > 0) {
        return for_dtype<Rest...>(caller, dtype, act);
    } else {
        fail(caller, " has no kernel for ", dtype, ": name its type, as in ", caller, "<float, double>");
    }
}

// Calls act(TypeOf<T>()) for the T among Types that matches the tensors, which must share one dtype and be on `device`.
template <class... Types, class Act>
auto with_dtype(const char* caller, DeviceType device, Tensors tensors, const Act& act) {
    static_assert(sizeof...(Types) > 0, "opwright: name the element types, as in elementwise<float, double>(...)");
    static_assert(((dtype_of<Types> != ScalarType::Undefined) && ...),
                  "opwright: loops over tensors support float, double, opwright::BFloat16 and opwright::Half");
    return for_dtype<Types...>(caller, dtype_of_all(caller, device, tensors), act);
}

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

// The C++ types that a kernel may accept and return, and the schema type of each.
//
//   schema                C++ parameter                                C++ result
//   Tensor                Tensor, const Tensor&                        Tensor
//   Tensor(a!)            Tensor& (or any of the above)                Tensor
//   int, SymInt           int64_t                                      int64_t
//   float                 double                                       double
//   bool                  bool                                         bool
//   str                   std::string, std::string_view                std::string
//   ScalarType, Device, Layout, MemoryFormat: the C++ types of the same names
//   T?                    std::optional<T>                             std::optional<T>
//   T[], T[n]             std::vector<T>, HeaderOnlyArrayRef<T>        std::vector<T>
//   T?[], T[]?, T?[]?     vectors of optionals, optional vectors       the same
//   (T, U)                                                             std::tuple<T, U>
//   ()                                                                 void
//
// Parameters may also be `const T&`. A kernel that accepts `Tensor&` writes to its argument: the schema must then
// contain `Tensor(a!)`, because torch.compile and autograd rely on it. No other reference is supported.
//
// Two limitations of torch (as of 2.13): a ScalarType, Layout or MemoryFormat result reaches Python as a number, and a
// str result leaks its length on each call.
#pragma once

#include <opwright/schema.h>
#include <torch/csrc/stable/device.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Layout.h>
#include <torch/headeronly/core/MemoryFormat.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/HeaderOnlyArrayRef.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {

using torch::headeronly::DeviceType;
using torch::headeronly::HeaderOnlyArrayRef;
using torch::headeronly::Layout;
using torch::headeronly::MemoryFormat;
using torch::headeronly::ScalarType;
using torch::stable::Device;
using torch::stable::Tensor;

namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;

// The storage of a parameter between the stack and the kernel, and its schema type. The primary template is for
// unsupported types: the first message that applies is the relevant one.
template <class T>
struct Value {
    static constexpr bool is_float = std::is_floating_point_v<T>;
    static constexpr bool is_characters = std::is_same_v<T, const char*> || std::is_same_v<T, char*>;
    static constexpr bool is_pointer = std::is_pointer_v<T> && !is_characters;
    static_assert(!is_float, "opwright: a schema's `float` is a C++ double: use double");
    static_assert(!std::is_integral_v<T>, "opwright: a schema's `int` is a C++ int64_t: use int64_t");
    static_assert(!is_characters, "opwright: a schema's `str` is a C++ string: use std::string");
    static_assert(!is_pointer,
                  "opwright: the stable ABI does not support pointers: use opwright::Tensor and its data pointer");
    static_assert(!std::is_enum_v<T>,
                  "opwright: the stable ABI does not support this enum: use int64_t or std::string");
    static_assert(is_float || std::is_integral_v<T> || is_characters || is_pointer || std::is_enum_v<T>,
                  "opwright: the stable ABI does not support this type: use opwright::Tensor, int64_t, double, bool, "
                  "std::string, ScalarType, Device, Layout, MemoryFormat, or std::optional or std::vector of one");
    using Storage = T;
    static constexpr Type type{};
};

template <class T, Base of>
struct PlainValue {
    using Storage = T;
    static constexpr Type type{of, Shape::Plain, false};
};

template <>
struct Value<Tensor> : PlainValue<Tensor, Base::Tensor> {};
template <>
struct Value<std::int64_t> : PlainValue<std::int64_t, Base::Int> {};
template <>
struct Value<double> : PlainValue<double, Base::Float> {};
template <>
struct Value<bool> : PlainValue<bool, Base::Bool> {};
template <>
struct Value<std::string> : PlainValue<std::string, Base::Str> {};
template <>
struct Value<std::string_view> : PlainValue<std::string, Base::Str> {};
template <>
struct Value<ScalarType> : PlainValue<ScalarType, Base::ScalarType> {};
template <>
struct Value<Device> : PlainValue<Device, Base::Device> {};
template <>
struct Value<Layout> : PlainValue<Layout, Base::Layout> {};
template <>
struct Value<MemoryFormat> : PlainValue<MemoryFormat, Base::MemoryFormat> {};

template <class T>
struct Value<std::optional<T>> {
    using Storage = std::optional<typename Value<T>::Storage>;
    static constexpr Type type{Value<T>::type.base, made_optional(Value<T>::type.shape), false};
    static_assert(type.shape != Shape::Other, "opwright: use one std::optional around a type, not two");
};

template <class T>
struct Value<std::vector<T>> {
    using Storage = std::vector<T>;
    static constexpr Type type{Value<T>::type.base, made_list(Value<T>::type.shape), false};
    static_assert(type.shape != Shape::Other,
                  "opwright: the stable ABI does not support a list of lists: use std::vector<T>");
    static_assert(!std::is_same_v<T, std::string_view>,
                  "opwright: a list of strings must own them: use std::vector<std::string>");
};

template <class T>
struct Value<HeaderOnlyArrayRef<T>> : Value<std::vector<T>> {
    static_assert(!std::is_same_v<T, bool>, "opwright: a list of bool is packed: use std::vector<bool>");
};

// A parameter as the kernel's signature declares it; `index` is for the compiler's message.
template <std::size_t index, class T>
struct Parameter {
    using Bare = std::remove_cv_t<std::remove_reference_t<T>>;
    static constexpr bool writes = std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>;
    static_assert(!writes || std::is_same_v<Bare, Tensor>,
                  "opwright: only a Tensor can be passed by non-const reference: use a value or a const reference");
    static_assert(!std::is_rvalue_reference_v<T>,
                  "opwright: use a value or a const reference, not an rvalue reference");
    using Storage = typename Value<Bare>::Storage;
    static constexpr Type type{Value<Bare>::type.base, Value<Bare>::type.shape, writes};
};

// A result as the kernel's signature declares it: always an owning value.
template <std::size_t index, class T>
struct Result {
    static_assert(!std::is_reference_v<T> && !std::is_const_v<T>,
                  "opwright: return the result by value, not by reference");
    using Bare = std::remove_cv_t<std::remove_reference_t<T>>;
    static_assert(std::is_same_v<typename Value<Bare>::Storage, Bare>,
                  "opwright: a result must own its data: use std::string or std::vector");
    static constexpr Type type = Value<Bare>::type;
};

// The parameter and result types of a kernel.
struct Signature {
    const Type* parameters;
    std::size_t parameter_count;
    const Type* results;
    std::size_t result_count;

    constexpr bool takes_a_tensor() const {
        for (std::size_t i = 0; i < parameter_count; ++i) {
            if (parameters[i].base == Base::Tensor) return true;
        }
        return false;
    }

    // False if a type is not supported; that has its own error message.
    constexpr bool carried() const {
        for (std::size_t i = 0; i < parameter_count; ++i) {
            if (parameters[i].base == Base::Other) return false;
        }
        for (std::size_t i = 0; i < result_count; ++i) {
            if (results[i].base == Base::Other) return false;
        }
        return true;
    }
};

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

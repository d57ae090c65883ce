// Checks a kernel's arguments. A failed check throws std::runtime_error (RuntimeError in Python) with a message that
// names the argument, the expected and actual values, and the fix. A passing check allocates nothing.
//
//     namespace check = opwright::check;
//     check::device(image, "image", DeviceType::CPU);
//     check::dtype(image, "image", {ScalarType::Byte, ScalarType::Float});
//     check::rank(image, "image", {2, 3});
//     check::sizes(warp, "warp", {check::any, 3, 3});
//     OPWRIGHT_CHECK(height > 0, "height must be positive, got ", height);
#pragma once

#include <opwright/common.h>
#include <opwright/types.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {

// The Python name of a dtype, such as "float32".
constexpr std::string_view dtype_name(ScalarType dtype) {
    switch (dtype) {
        case ScalarType::Byte:
            return "uint8";
        case ScalarType::Char:
            return "int8";
        case ScalarType::Short:
            return "int16";
        case ScalarType::Int:
            return "int32";
        case ScalarType::Long:
            return "int64";
        case ScalarType::UInt16:
            return "uint16";
        case ScalarType::UInt32:
            return "uint32";
        case ScalarType::UInt64:
            return "uint64";
        case ScalarType::Half:
            return "float16";
        case ScalarType::BFloat16:
            return "bfloat16";
        case ScalarType::Float:
            return "float32";
        case ScalarType::Double:
            return "float64";
        case ScalarType::ComplexHalf:
            return "complex32";
        case ScalarType::ComplexFloat:
            return "complex64";
        case ScalarType::ComplexDouble:
            return "complex128";
        case ScalarType::Bool:
            return "bool";
        case ScalarType::Float8_e5m2:
            return "float8_e5m2";
        case ScalarType::Float8_e4m3fn:
            return "float8_e4m3fn";
        case ScalarType::Float8_e5m2fnuz:
            return "float8_e5m2fnuz";
        case ScalarType::Float8_e4m3fnuz:
            return "float8_e4m3fnuz";
        case ScalarType::Float8_e8m0fnu:
            return "float8_e8m0fnu";
        default:
            return "an unnamed dtype";
    }
}

// The Python name of a device type, such as "cuda".
constexpr std::string_view device_name(DeviceType type) {
    switch (type) {
        case DeviceType::CPU:
            return "cpu";
        case DeviceType::CUDA:
            return "cuda";
        case DeviceType::Meta:
            return "meta";
        case DeviceType::XPU:
            return "xpu";
        case DeviceType::MPS:
            return "mps";
        case DeviceType::PrivateUse1:
            return "privateuseone";
        default:
            return "an unnamed device";
    }
}

namespace detail {

// A part of a message, and the function that appends it in Python's notation.
struct MessagePart {
    const void* value;
    void (*append)(std::string& to, const void* value);
};

OPWRIGHT_COMMON void append_text(std::string& to, const void* text);  // a const char*
OPWRIGHT_COMMON void append_view(std::string& to, const void* view);
OPWRIGHT_COMMON void append_bool(std::string& to, const void* value);
OPWRIGHT_COMMON void append_dtype(std::string& to, const void* dtype);         // "float32"
OPWRIGHT_COMMON void append_device(std::string& to, const void* device);       // "cuda:0"
OPWRIGHT_COMMON void append_device_type(std::string& to, const void* device);  // "cuda"
OPWRIGHT_COMMON void append_int64(std::string& to, const void* number);
OPWRIGHT_COMMON void append_uint64(std::string& to, const void* number);
OPWRIGHT_COMMON void append_float(std::string& to, const void* number);
OPWRIGHT_COMMON void append_double(std::string& to, const void* number);
OPWRIGHT_COMMON void append_sizes(std::string& to, const void* sizes);  // "(4, 3)"; a HeaderOnlyArrayRef<int64_t>

// The type to which a number is widened before it is written into a message.
template <class Number>
using Widest = std::conditional_t<std::is_floating_point_v<Number>,
                                  std::conditional_t<std::is_same_v<Number, float>, float, double>,
                                  std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>>;

// The part of a message that shows `value`. `value` must outlive it.
template <class T>
MessagePart part_of(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        return {&value, append_bool};
    } else if constexpr (std::is_same_v<T, ScalarType>) {
        return {&value, append_dtype};
    } else if constexpr (std::is_same_v<T, DeviceType>) {
        return {&value, append_device_type};
    } else if constexpr (std::is_same_v<T, Device>) {
        return {&value, append_device};
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
        return {&value, append_int64};
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
        return {&value, append_uint64};
    } else if constexpr (std::is_same_v<T, float>) {
        return {&value, append_float};
    } else if constexpr (std::is_same_v<T, double>) {
        return {&value, append_double};
    } else if constexpr (std::is_same_v<T, HeaderOnlyArrayRef<std::int64_t>>) {
        return {&value, append_sizes};
    } else if constexpr (std::is_arithmetic_v<T>) {
        return {&value, [](std::string& to, const void* number) {
                    const auto widened = static_cast<Widest<T>>(*static_cast<const T*>(number));
                    const MessagePart part = part_of(widened);
                    part.append(to, part.value);
                }};
    } else if constexpr (std::is_array_v<T>) {
        return {value, append_text};
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
        return {&value, [](std::string& to, const void* text) {
                    const std::string_view view = *static_cast<const T*>(text);
                    append_view(to, &view);
                }};
    } else {
        return {&value, [](std::string& to, const void* range) {
                    const T& sizes = *static_cast<const T*>(range);
                    const std::vector<std::int64_t> copied(sizes.begin(), sizes.end());
                    const HeaderOnlyArrayRef<std::int64_t> all(copied);
                    append_sizes(to, &all);
                }};
    }
}

[[noreturn]] OPWRIGHT_COMMON void fail_with(std::initializer_list<MessagePart> parts);

// Throws the concatenated parts.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
    fail_with({part_of(parts)...});
}

}  // namespace detail

// OPWRIGHT_CHECK(condition, parts...): throws the concatenated parts if the condition is false. A part is a string, a
// number, a bool, a ScalarType, a Device, a DeviceType, or a list of sizes.
#define OPWRIGHT_CHECK(condition, ...)                                                                             \
    do {                                                                                                           \
        if (!(condition)) [[unlikely]] {                                                                           \
            static_assert(sizeof(#__VA_ARGS__) > 1,                                                                \
                          "OPWRIGHT_CHECK needs a message: name the argument, the expected and the actual value"); \
            ::opwright::detail::fail(__VA_ARGS__);                                                                 \
        }                                                                                                          \
    } while (false)

namespace check {

// A wildcard for `sizes`: matches a dimension of any size.
inline constexpr std::int64_t any = -1;

OPWRIGHT_COMMON void device(const Tensor& tensor, std::string_view name, DeviceType wanted);

OPWRIGHT_COMMON void same_device(const Tensor& tensor, std::string_view name, const Tensor& other,
                                 std::string_view other_name);

OPWRIGHT_COMMON void dtype(const Tensor& tensor, std::string_view name, std::initializer_list<ScalarType> wanted);

inline void dtype(const Tensor& tensor, std::string_view name, ScalarType wanted) {
    dtype(tensor, name, {wanted});
}

OPWRIGHT_COMMON void rank(const Tensor& tensor, std::string_view name, std::initializer_list<std::int64_t> wanted);

inline void rank(const Tensor& tensor, std::string_view name, std::int64_t wanted) {
    rank(tensor, name, {wanted});
}

OPWRIGHT_COMMON void sizes(const Tensor& tensor, std::string_view name, std::initializer_list<std::int64_t> wanted);

OPWRIGHT_COMMON void same_sizes(const Tensor& tensor, std::string_view name, const Tensor& other,
                                std::string_view other_name);

OPWRIGHT_COMMON void contiguous(const Tensor& tensor, std::string_view name);

OPWRIGHT_COMMON void finite(double value, std::string_view name);

// Checks every element of a float32 or float64 tensor on the CPU, one by one: use it for small tensors only.
OPWRIGHT_COMMON void finite(const Tensor& tensor, std::string_view name);

}  // namespace check
}  // namespace opwright OPWRIGHT_HIDDEN

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/common/check.inc>
#endif

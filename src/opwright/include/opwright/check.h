// Checks of a kernel's arguments. A failed check throws std::runtime_error, a RuntimeError in Python, whose message
// names the argument, the expected and the actual value, and the fix. A check that passes allocates nothing.
//
//     namespace check = opwright::check;
//     check::device(image, "image", DeviceType::CPU);
//     check::dtype(image, "image", {ScalarType::Byte, ScalarType::Float});
//     check::rank(image, "image", {2, 3});
//     check::sizes(warp, "warp", {check::any, 3, 3});
//     OPWRIGHT_CHECK(height > 0, "height must be positive, got ", height);
#pragma once

#include <opwright/types.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {

// The name of a dtype in Python: "float32".
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

// The name of a kind of device in Python: "cuda".
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

// Appends a part of a message, as Python writes it: a shape as "(4, 3)", a dtype as "float32", a device as "cuda:0".
template <class Part>
void append(std::string& to, const Part& part) {
    if constexpr (std::is_same_v<Part, bool>) {
        to += part ? "True" : "False";
    } else if constexpr (std::is_same_v<Part, ScalarType>) {
        to += dtype_name(part);
    } else if constexpr (std::is_same_v<Part, DeviceType>) {
        to += device_name(part);
    } else if constexpr (std::is_same_v<Part, Device>) {
        to += device_name(part.type());
        if (!part.is_cpu() && part.has_index()) to += ":" + std::to_string(part.index());
    } else if constexpr (std::is_arithmetic_v<Part>) {
        std::array<char, 32> digits{};
        to.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), part).ptr);
    } else if constexpr (std::is_convertible_v<const Part&, std::string_view>) {
        to += std::string_view(part);
    } else {
        to += "(";
        std::size_t i = 0;
        for (const std::int64_t size : part) {
            if (i++ > 0) to += ", ";
            to += size < 0 ? "*" : std::to_string(size);
        }
        to += i == 1 ? ",)" : ")";
    }
}

// "2, 3 or 4"
template <class T>
std::string one_of(std::initializer_list<T> choices) {
    std::string words;
    std::size_t i = 0;
    for (const T& choice : choices) {
        if (i > 0) words += i + 1 == choices.size() ? " or " : ", ";
        append(words, choice);
        ++i;
    }
    return words;
}

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
    std::string message;
    (append(message, parts), ...);
    throw std::runtime_error(message);
}

}  // namespace detail

// OPWRIGHT_CHECK(condition, parts...): throws the concatenated parts if the condition is false. A part is a string, a
// number, a bool, a ScalarType, a Device, a DeviceType, or sizes.
#define OPWRIGHT_CHECK(condition, ...)                                                                        \
    do {                                                                                                      \
        if (!(condition)) [[unlikely]] {                                                                      \
            static_assert(sizeof(#__VA_ARGS__) > 1,                                                           \
                          "OPWRIGHT_CHECK needs a message: name the argument, what was expected, what came"); \
            ::opwright::detail::fail(__VA_ARGS__);                                                            \
        }                                                                                                     \
    } while (false)

namespace detail {

template <class T>
void finite_elements(const Tensor& tensor, std::string_view name) {
    const T* data = static_cast<const T*>(tensor.const_data_ptr());
    const auto sizes = tensor.sizes();
    const auto strides = tensor.strides();
    const std::int64_t count = tensor.numel();
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t offset = 0;
        std::int64_t rest = i;
        for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) offset += rest % sizes[d] * strides[d];
        if (std::isfinite(data[offset])) continue;
        std::vector<std::int64_t> index(sizes.size());
        rest = i;
        for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) index[d] = rest % sizes[d];
        fail(name, " must be finite, got ", data[offset], " at ", index);
    }
}

}  // namespace detail

namespace check {

// In `sizes`: a dimension of any size.
inline constexpr std::int64_t any = -1;

inline void device(const Tensor& tensor, std::string_view name, DeviceType wanted) {
    const Device got = tensor.device();
    OPWRIGHT_CHECK(got.type() == wanted, name, " must be on ", wanted, ", got ", got, ": move it with .to('", wanted,
                   "')");
}

inline void same_device(const Tensor& tensor, std::string_view name, const Tensor& other, std::string_view other_name) {
    const Device got = tensor.device();
    const Device wanted = other.device();
    OPWRIGHT_CHECK(got == wanted, name, " must be on the device of ", other_name, ", ", wanted, ", got ", got,
                   ": move it with .to(", other_name, ".device)");
}

inline void dtype(const Tensor& tensor, std::string_view name, std::initializer_list<ScalarType> wanted) {
    const ScalarType got = tensor.scalar_type();
    for (const ScalarType one : wanted) {
        if (one == got) return;
    }
    detail::fail(name, " must be ", detail::one_of(wanted), ", got ", got, ": convert it with .to(torch.",
                 *wanted.begin(), ")");
}

inline void dtype(const Tensor& tensor, std::string_view name, ScalarType wanted) {
    dtype(tensor, name, {wanted});
}

inline void rank(const Tensor& tensor, std::string_view name, std::initializer_list<std::int64_t> wanted) {
    const std::int64_t got = tensor.dim();
    for (const std::int64_t one : wanted) {
        if (one == got) return;
    }
    detail::fail(name, " must have ", detail::one_of(wanted),
                 *wanted.begin() == 1 && wanted.size() == 1 ? " dimension" : " dimensions", ", got ", got, ": shape ",
                 tensor.sizes());
}

inline void rank(const Tensor& tensor, std::string_view name, std::int64_t wanted) {
    rank(tensor, name, {wanted});
}

inline void sizes(const Tensor& tensor, std::string_view name, std::initializer_list<std::int64_t> wanted) {
    const auto got = tensor.sizes();
    bool fits = got.size() == wanted.size();
    for (std::size_t i = 0; fits && i < got.size(); ++i) fits = wanted.begin()[i] == any || wanted.begin()[i] == got[i];
    OPWRIGHT_CHECK(fits, name, " must have shape ", wanted, ", got ", got);
}

inline void same_sizes(const Tensor& tensor, std::string_view name, const Tensor& other, std::string_view other_name) {
    // Not ==, which arrays lack in PyTorch 2.11.
    OPWRIGHT_CHECK(tensor.sizes().equals(other.sizes()), name, " must have the shape of ", other_name, ", ",
                   other.sizes(), ", got ", tensor.sizes());
}

inline void contiguous(const Tensor& tensor, std::string_view name) {
    OPWRIGHT_CHECK(tensor.is_contiguous(), name, " must be contiguous, got strides ", tensor.strides(), " for shape ",
                   tensor.sizes(), ": call .contiguous() first");
}

inline void finite(double value, std::string_view name) {
    OPWRIGHT_CHECK(std::isfinite(value), name, " must be finite, got ", value);
}

// Every element of a float32 or float64 tensor on the CPU. It reads them one by one: use it for small tensors.
inline void finite(const Tensor& tensor, std::string_view name) {
    device(tensor, name, DeviceType::CPU);
    dtype(tensor, name, {ScalarType::Float, ScalarType::Double});
    if (tensor.scalar_type() == ScalarType::Float) {
        detail::finite_elements<float>(tensor, name);
    } else {
        detail::finite_elements<double>(tensor, name);
    }
}

}  // namespace check
}  // namespace opwright OPWRIGHT_HIDDEN

// Compares a schema with a kernel's signature: at compile time if both are known then, otherwise when the shared object
// is loaded.
#pragma once

#include <opwright/schema.h>
#include <opwright/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

#define OPWRIGHT_SCHEMA_NAMES(T) {T, T "?", T "[]", T "[]?", T "?[]", T "?[]?", "a list of lists"}
#define OPWRIGHT_KERNEL_NAMES(T)                         \
    {T,                                                  \
     "std::optional<" T ">",                             \
     "std::vector<" T ">",                               \
     "std::optional<std::vector<" T ">>",                \
     "std::vector<std::optional<" T ">>",                \
     "std::optional<std::vector<std::optional<" T ">>>", \
     "another schema"}

inline constexpr std::size_t shape_count = static_cast<std::size_t>(Shape::Other) + 1;
inline constexpr std::size_t type_count = (static_cast<std::size_t>(Base::Other) + 1) * shape_count;

// Indexed by base, then by shape. The entries are literals, because compilers print them.
inline constexpr const char* schema_names[][shape_count] = {
    OPWRIGHT_SCHEMA_NAMES("Tensor"),       OPWRIGHT_SCHEMA_NAMES("int"),
    OPWRIGHT_SCHEMA_NAMES("float"),        OPWRIGHT_SCHEMA_NAMES("bool"),
    OPWRIGHT_SCHEMA_NAMES("str"),          OPWRIGHT_SCHEMA_NAMES("ScalarType"),
    OPWRIGHT_SCHEMA_NAMES("Device"),       OPWRIGHT_SCHEMA_NAMES("Layout"),
    OPWRIGHT_SCHEMA_NAMES("MemoryFormat"), OPWRIGHT_SCHEMA_NAMES("a type that the stable ABI does not support"),
};
inline constexpr const char* kernel_names[][shape_count] = {
    OPWRIGHT_KERNEL_NAMES("Tensor"),       OPWRIGHT_KERNEL_NAMES("int64_t"),
    OPWRIGHT_KERNEL_NAMES("double"),       OPWRIGHT_KERNEL_NAMES("bool"),
    OPWRIGHT_KERNEL_NAMES("std::string"),  OPWRIGHT_KERNEL_NAMES("ScalarType"),
    OPWRIGHT_KERNEL_NAMES("Device"),       OPWRIGHT_KERNEL_NAMES("Layout"),
    OPWRIGHT_KERNEL_NAMES("MemoryFormat"), OPWRIGHT_KERNEL_NAMES("another schema"),
};

#undef OPWRIGHT_SCHEMA_NAMES
#undef OPWRIGHT_KERNEL_NAMES

constexpr const char* schema_name(Type type) {
    return schema_names[static_cast<std::size_t>(type.base)][static_cast<std::size_t>(type.shape)];
}

constexpr const char* kernel_name(Type type) {
    return kernel_names[static_cast<std::size_t>(type.base)][static_cast<std::size_t>(type.shape)];
}

constexpr Type type_at(std::size_t code) {
    return {static_cast<Base>(code / shape_count), static_cast<Shape>(code % shape_count), false};
}

constexpr std::size_t code_of(Type type) {
    return static_cast<std::size_t>(type.base) * shape_count + static_cast<std::size_t>(type.shape);
}

// The first difference between a schema and a signature.
struct Difference {
    enum class Kind : std::uint8_t { None, Malformed, ParameterCount, Parameter, Mutated, ResultCount, Result };

    Kind kind = Kind::None;
    std::size_t index = 0;  // of the parameter or the result
    Argument says;          // the schema's, at that index
    std::size_t count = 0;  // of the schema's parameters or results
};

constexpr std::size_t count_of(std::string_view list) {
    std::size_t count = 0;
    Argument ignored;
    for (Arguments arguments(list); arguments.next(ignored);) ++count;
    return count;
}

constexpr Difference compare(const Schema& schema, const Signature& kernel) {
    using Kind = Difference::Kind;
    if (!schema.well_formed) return {Kind::Malformed, 0, {}, 0};
    const std::size_t parameters = count_of(schema.arguments);
    if (parameters != kernel.parameter_count) return {Kind::ParameterCount, 0, {}, parameters};
    const std::size_t results = count_of(schema.results);
    if (results != kernel.result_count) return {Kind::ResultCount, 0, {}, results};
    Argument says;
    Arguments arguments(schema.arguments);
    for (std::size_t i = 0; arguments.next(says); ++i) {
        const Type& takes = kernel.parameters[i];
        if (!says.type.same_value(takes)) return {Kind::Parameter, i, says, parameters};
        if (takes.mutated && !says.type.mutated) return {Kind::Mutated, i, says, parameters};
    }
    Arguments returns(schema.results);
    for (std::size_t i = 0; returns.next(says); ++i) {
        if (!says.type.same_value(kernel.results[i])) return {Kind::Result, i, says, results};
    }
    return {};
}

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

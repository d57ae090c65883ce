// Compares a schema with a kernel's signature: while the compiler runs where both are known then, else when the library
// is loaded. What the compiler prints for a difference is the name of a function that cannot be called, so the names
// and template arguments in the first part of this header are a message to read.
#pragma once

#include <opwright/box.h>
#include <opwright/schema.h>
#include <opwright/types.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace opwright OPWRIGHT_HIDDEN {

template <std::size_t number>
struct parameter;  // the first is 0
template <std::size_t number>
struct result;
template <text type>
struct the_schema_says;
template <text type>
struct the_kernel_takes;
template <text type>
struct the_kernel_returns;
template <text type>
struct use;
template <std::size_t count>
struct the_schema_has_parameters;
template <std::size_t count>
struct the_kernel_has_parameters;
template <std::size_t count>
struct the_schema_has_results;
template <std::size_t count>
struct the_kernel_has_results;
template <text ns>
struct the_namespace;
template <text schema>
struct defines;

template <class... What>
void the_schema_and_the_kernel_differ();
template <class... What>
void the_schema_is_malformed();
template <class... What>
void no_such_operator_is_defined();

namespace detail {

#define OPWRIGHT_SCHEMA_NAMES(T) {T, T "?", T "[]", T "[]?", T "?[]", T "?[]?", "a list of lists"}
#define OPWRIGHT_KERNEL_NAMES(T)                                                              \
    {T,                                                                                       \
     "std::optional<" T ">",                                                                  \
     "std::vector<" T ">",                                                                    \
     "std::optional<std::vector<" T ">>",                                                     \
     "std::vector<std::optional<" T ">>",                                                     \
     "std::optional<std::vector<std::optional<" T ">>>",                                      \
     "another schema"}

inline constexpr std::size_t shape_count = static_cast<std::size_t>(Shape::Other) + 1;
inline constexpr std::size_t type_count = (static_cast<std::size_t>(Base::Other) + 1) * shape_count;

// By base, then by shape. Literals, because compilers print them.
inline constexpr const char* schema_names[][shape_count] = {
    OPWRIGHT_SCHEMA_NAMES("Tensor"),      OPWRIGHT_SCHEMA_NAMES("int"),        OPWRIGHT_SCHEMA_NAMES("float"),
    OPWRIGHT_SCHEMA_NAMES("bool"),        OPWRIGHT_SCHEMA_NAMES("str"),        OPWRIGHT_SCHEMA_NAMES("ScalarType"),
    OPWRIGHT_SCHEMA_NAMES("Device"),      OPWRIGHT_SCHEMA_NAMES("Layout"),     OPWRIGHT_SCHEMA_NAMES("MemoryFormat"),
    OPWRIGHT_SCHEMA_NAMES("a type that the stable ABI does not carry"),
};
inline constexpr const char* kernel_names[][shape_count] = {
    OPWRIGHT_KERNEL_NAMES("Tensor"),      OPWRIGHT_KERNEL_NAMES("int64_t"),    OPWRIGHT_KERNEL_NAMES("double"),
    OPWRIGHT_KERNEL_NAMES("bool"),        OPWRIGHT_KERNEL_NAMES("std::string"), OPWRIGHT_KERNEL_NAMES("ScalarType"),
    OPWRIGHT_KERNEL_NAMES("Device"),      OPWRIGHT_KERNEL_NAMES("Layout"),     OPWRIGHT_KERNEL_NAMES("MemoryFormat"),
    OPWRIGHT_KERNEL_NAMES("another schema"),
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

// The first place in which a schema and a signature differ.
struct Difference {
    enum class Kind : std::uint8_t { None, Malformed, ParameterCount, Parameter, Written, ResultCount, Result };

    Kind kind = Kind::None;
    std::size_t index = 0;   // of the parameter or the result
    Argument says;           // at that place, in the schema
    std::size_t count = 0;   // of the schema's parameters or results
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
        if (takes.written && !says.type.written) return {Kind::Written, i, says, parameters};
    }
    Arguments returns(schema.results);
    for (std::size_t i = 0; returns.next(says); ++i) {
        if (!says.type.same_value(kernel.results[i])) return {Kind::Result, i, says, results};
    }
    return {};
}

// The rest turns a difference into one call that the compiler refuses: values become template arguments, for g++ and
// nvcc, and function arguments, for clang.

template <std::size_t length>
consteval text<length + 1> as_text(std::string_view view) {
    char characters[length + 1] = {};
    for (std::size_t i = 0; i < length; ++i) characters[i] = view[i];
    return text<length + 1>(characters);
}

template <std::size_t code>
inline constexpr auto schema_text = as_text<std::string_view(schema_name(type_at(code))).size()>(schema_name(type_at(code)));
template <std::size_t code>
inline constexpr auto kernel_text = as_text<std::string_view(kernel_name(type_at(code))).size()>(kernel_name(type_at(code)));

template <std::size_t index, std::size_t takes, std::size_t... code>
constexpr void report_parameter(const char* /*schema*/, std::size_t says, const char* /*the_schema_says*/,
                                const char* /*the_kernel_takes*/, const char* /*use*/,
                                std::index_sequence<code...> /*codes*/) {
    ((says == code ? the_schema_and_the_kernel_differ<parameter<index>, the_schema_says<schema_text<code>>,
                                                      the_kernel_takes<kernel_text<takes>>, use<kernel_text<code>>>()
                   : void()),
     ...);
}

template <std::size_t index, std::size_t returns, std::size_t... code>
constexpr void report_result(const char* /*schema*/, std::size_t says, const char* /*the_schema_says*/,
                             const char* /*the_kernel_returns*/, const char* /*use*/,
                             std::index_sequence<code...> /*codes*/) {
    ((says == code ? the_schema_and_the_kernel_differ<result<index>, the_schema_says<schema_text<code>>,
                                                      the_kernel_returns<kernel_text<returns>>, use<kernel_text<code>>>()
                   : void()),
     ...);
}

template <class Kernel, std::size_t... count>
constexpr void report_parameter_count(std::size_t schema, std::index_sequence<count...> /*counts*/) {
    ((schema == count ? the_schema_and_the_kernel_differ<
                            the_schema_has_parameters<count>,
                            the_kernel_has_parameters<Kernel::signature.parameter_count>>()
                      : void()),
     ...);
    if (schema >= sizeof...(count)) {
        the_schema_and_the_kernel_differ<the_kernel_has_parameters<Kernel::signature.parameter_count>>();
    }
}

template <class Kernel, std::size_t... count>
constexpr void report_result_count(std::size_t schema, std::index_sequence<count...> /*counts*/) {
    ((schema == count ? the_schema_and_the_kernel_differ<
                            the_schema_has_results<count>,
                            the_kernel_has_results<Kernel::signature.result_count>>()
                      : void()),
     ...);
    if (schema >= sizeof...(count)) {
        the_schema_and_the_kernel_differ<the_kernel_has_results<Kernel::signature.result_count>>();
    }
}

template <class Kernel, std::size_t... parameter, std::size_t... result>
constexpr void report(const char* schema, const Difference& difference, std::index_sequence<parameter...> /*indices*/,
                      std::index_sequence<result...> /*indices*/) {
    using Kind = Difference::Kind;
    constexpr std::make_index_sequence<type_count> codes;
    constexpr std::make_index_sequence<64> counts;
    const std::size_t at = difference.index;
    if (difference.kind == Kind::Malformed) the_schema_is_malformed();
    if (difference.kind == Kind::ParameterCount) report_parameter_count<Kernel>(difference.count, counts);
    if (difference.kind == Kind::ResultCount) report_result_count<Kernel>(difference.count, counts);
    if (difference.kind == Kind::Parameter) {
        ((at == parameter ? report_parameter<parameter, code_of(Kernel::signature.parameters[parameter])>(schema, code_of(difference.says.type), schema_name(difference.says.type), kernel_name(Kernel::signature.parameters[parameter]), kernel_name(difference.says.type), codes) : void()), ...);
    }
    if (difference.kind == Kind::Result) {
        ((at == result ? report_result<result, code_of(Kernel::signature.results[result])>(schema, code_of(difference.says.type), schema_name(difference.says.type), kernel_name(Kernel::signature.results[result]), kernel_name(difference.says.type), codes) : void()), ...);
    }
    if (difference.kind == Kind::Written) {
        ((at == parameter
              ? the_schema_and_the_kernel_differ<opwright::parameter<parameter>, the_schema_says<"Tensor">,
                                                 the_kernel_takes<"Tensor&">,
                                                 use<"Tensor(a!) in the schema, or const Tensor&">>()
              : void()),
         ...);
    }
}

// Does not compile where the kernel does not fit the schema.
template <class Kernel>
constexpr void require_fit(const char* schema, const Schema& parts) {
    const Difference difference = compare(parts, Kernel::signature);
    if (difference.kind == Difference::Kind::None) return;
    report<Kernel>(schema, difference, std::make_index_sequence<Kernel::signature.parameter_count>(),
                   std::make_index_sequence<Kernel::signature.result_count>());
}

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

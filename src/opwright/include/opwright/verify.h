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

// By base, then by shape. Literals, because compilers print them.
inline constexpr const char* schema_names[][shape_count] = {
    OPWRIGHT_SCHEMA_NAMES("Tensor"),       OPWRIGHT_SCHEMA_NAMES("int"),
    OPWRIGHT_SCHEMA_NAMES("float"),        OPWRIGHT_SCHEMA_NAMES("bool"),
    OPWRIGHT_SCHEMA_NAMES("str"),          OPWRIGHT_SCHEMA_NAMES("ScalarType"),
    OPWRIGHT_SCHEMA_NAMES("Device"),       OPWRIGHT_SCHEMA_NAMES("Layout"),
    OPWRIGHT_SCHEMA_NAMES("MemoryFormat"), OPWRIGHT_SCHEMA_NAMES("a type that the stable ABI does not carry"),
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

// The first place in which a schema and a signature differ.
struct Difference {
    enum class Kind : std::uint8_t { None, Malformed, ParameterCount, Parameter, Written, ResultCount, Result };

    Kind kind = Kind::None;
    std::size_t index = 0;  // of the parameter or the result
    Argument says;          // at that place, in the schema
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
        if (takes.written && !says.type.written) return {Kind::Written, i, says, parameters};
    }
    Arguments returns(schema.results);
    for (std::size_t i = 0; returns.next(says); ++i) {
        if (!says.type.same_value(kernel.results[i])) return {Kind::Result, i, says, results};
    }
    return {};
}

// The rest turns a difference into one call that the compiler refuses. Numbers that are known while this header is
// evaluated become template arguments by a switch, because g++ and nvcc print no others; clang prints the arguments
// of the functions around it.

template <std::size_t length>
consteval text<length + 1> as_text(std::string_view view) {
    char characters[length + 1] = {};
    for (std::size_t i = 0; i < length; ++i) characters[i] = view[i];
    return text<length + 1>(characters);
}

template <std::size_t code>
inline constexpr std::string_view schema_view = schema_name(type_at(code));
template <std::size_t code>
inline constexpr std::string_view kernel_view = kernel_name(type_at(code));
template <std::size_t code>
inline constexpr auto schema_text = as_text<schema_view<code>.size()>(schema_view<code>);
template <std::size_t code>
inline constexpr auto kernel_text = as_text<kernel_view<code>.size()>(kernel_view<code>);

#define OPWRIGHT_TEN(CASE, ten)                                                                             \
    CASE(ten##0)                                                                                            \
    CASE(ten##1) CASE(ten##2) CASE(ten##3) CASE(ten##4) CASE(ten##5) CASE(ten##6) CASE(ten##7) CASE(ten##8) \
        CASE(ten##9)
#define OPWRIGHT_SEVENTY(CASE)                                                                                    \
    OPWRIGHT_TEN(CASE, )                                                                                          \
    OPWRIGHT_TEN(CASE, 1) OPWRIGHT_TEN(CASE, 2) OPWRIGHT_TEN(CASE, 3) OPWRIGHT_TEN(CASE, 4) OPWRIGHT_TEN(CASE, 5) \
        OPWRIGHT_TEN(CASE, 6)
static_assert(type_count == 70, "one case for each type");

template <std::size_t index, std::size_t takes>
constexpr void report_parameter(const char* /*schema*/, std::size_t says, const char* /*the_schema_says*/,
                                const char* /*the_kernel_takes*/, const char* /*use*/) {
#define OPWRIGHT_CASE(code)                                                                               \
    case code:                                                                                            \
        the_schema_and_the_kernel_differ<parameter<index>, the_schema_says<schema_text<code>>,            \
                                         the_kernel_takes<kernel_text<takes>>, use<kernel_text<code>>>(); \
        break;
    switch (says) { OPWRIGHT_SEVENTY(OPWRIGHT_CASE) }
#undef OPWRIGHT_CASE
}

template <std::size_t index, std::size_t returns>
constexpr void report_result(const char* /*schema*/, std::size_t says, const char* /*the_schema_says*/,
                             const char* /*the_kernel_returns*/, const char* /*use*/) {
#define OPWRIGHT_CASE(code)                                                                                   \
    case code:                                                                                                \
        the_schema_and_the_kernel_differ<result<index>, the_schema_says<schema_text<code>>,                   \
                                         the_kernel_returns<kernel_text<returns>>, use<kernel_text<code>>>(); \
        break;
    switch (says) { OPWRIGHT_SEVENTY(OPWRIGHT_CASE) }
#undef OPWRIGHT_CASE
}

template <std::size_t kernel_has>
constexpr void report_parameter_count(const char* /*schema*/, std::size_t schema_has) {
#define OPWRIGHT_CASE(count)                                                                                         \
    case count:                                                                                                      \
        the_schema_and_the_kernel_differ<the_schema_has_parameters<count>, the_kernel_has_parameters<kernel_has>>(); \
        break;
    switch (schema_has) {
        OPWRIGHT_SEVENTY(OPWRIGHT_CASE)
        default:
            the_schema_and_the_kernel_differ<the_kernel_has_parameters<kernel_has>>();
    }
#undef OPWRIGHT_CASE
}

template <std::size_t kernel_has>
constexpr void report_result_count(const char* /*schema*/, std::size_t schema_has) {
#define OPWRIGHT_CASE(count)                                                                                   \
    case count:                                                                                                \
        the_schema_and_the_kernel_differ<the_schema_has_results<count>, the_kernel_has_results<kernel_has>>(); \
        break;
    switch (schema_has) {
        OPWRIGHT_SEVENTY(OPWRIGHT_CASE)
        default:
            the_schema_and_the_kernel_differ<the_kernel_has_results<kernel_has>>();
    }
#undef OPWRIGHT_CASE
}

#undef OPWRIGHT_TEN
#undef OPWRIGHT_SEVENTY

template <class Kernel, std::size_t... parameter, std::size_t... result>
constexpr void report(const char* schema, const Difference& difference, std::index_sequence<parameter...> /*indices*/,
                      std::index_sequence<result...> /*indices*/) {
    using Kind = Difference::Kind;
    const std::size_t at = difference.index;
    const std::size_t says = code_of(difference.says.type);
    const char* const schema_says = schema_name(difference.says.type);
    const char* const use = kernel_name(difference.says.type);
    switch (difference.kind) {
        case Kind::None:
            break;
        case Kind::Malformed:
            the_schema_is_malformed();
            break;
        case Kind::ParameterCount:
            report_parameter_count<Kernel::signature.parameter_count>(schema, difference.count);
            break;
        case Kind::ResultCount:
            report_result_count<Kernel::signature.result_count>(schema, difference.count);
            break;
        case Kind::Parameter:
            ((at == parameter
                  ? report_parameter<parameter, code_of(Kernel::signature.parameters[parameter])>(
                        schema, says, schema_says, kernel_name(Kernel::signature.parameters[parameter]), use)
                  : void()),
             ...);
            break;
        case Kind::Result:
            ((at == result ? report_result<result, code_of(Kernel::signature.results[result])>(
                                 schema, says, schema_says, kernel_name(Kernel::signature.results[result]), use)
                           : void()),
             ...);
            break;
        case Kind::Written:
            ((at == parameter ? the_schema_and_the_kernel_differ<opwright::parameter<parameter>,
                                                                 the_schema_says<"Tensor">, the_kernel_takes<"Tensor&">,
                                                                 use<"const Tensor&, or Tensor(a!) in the schema">>()
                              : void()),
             ...);
            break;
    }
}

// Does not compile where the kernel does not fit the schema.
template <class Kernel>
constexpr void require_fit(const char* schema, const Schema& parts) {
    if (!Kernel::signature.carried()) return;
    report<Kernel>(schema, compare(parts, Kernel::signature),
                   std::make_index_sequence<Kernel::signature.parameter_count>(),
                   std::make_index_sequence<Kernel::signature.result_count>());
}

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

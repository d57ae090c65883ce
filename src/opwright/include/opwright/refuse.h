// Rejects at compile time a kernel that does not match its schema.
//
// A compiler's message cannot be composed, but it names the function that cannot be called and its template arguments:
//     the_schema_and_the_kernel_differ() [with What = at<parameter<2>, the_schema_says<"int">,
//     the_kernel_takes<"double">, use<"int64_t">>]
// The line above it names the schema and the kernel. The names in the first part of this header therefore form the
// message.
#pragma once

#include <opwright/compare.h>
#include <opwright/schema.h>
#include <opwright/types.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

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

template <class... Differing>
struct at;

template <class What>
void the_schema_and_the_kernel_differ();
void the_schema_is_malformed();
template <class... What>
void no_such_operator_is_defined();

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

// The switch turns the numbers in a difference into template arguments, because g++ and nvcc print nothing else. clang
// prints the function arguments, which serve only that purpose.
template <class Differing>
constexpr void refuse(std::size_t number, const char* /*schema*/, const char* /*the_schema_says*/,
                      const char* /*the_kernel_has*/, const char* /*use*/) {
    // clang-format off
#define OPWRIGHT_CASE(n) case n: the_schema_and_the_kernel_differ<typename Differing::template In<n>>(); break;
#define OPWRIGHT_TEN(n)                                                                                \
    OPWRIGHT_CASE(n##0) OPWRIGHT_CASE(n##1) OPWRIGHT_CASE(n##2) OPWRIGHT_CASE(n##3) OPWRIGHT_CASE(n##4) \
    OPWRIGHT_CASE(n##5) OPWRIGHT_CASE(n##6) OPWRIGHT_CASE(n##7) OPWRIGHT_CASE(n##8) OPWRIGHT_CASE(n##9)
    switch (number) {
        OPWRIGHT_TEN() OPWRIGHT_TEN(1) OPWRIGHT_TEN(2) OPWRIGHT_TEN(3) OPWRIGHT_TEN(4) OPWRIGHT_TEN(5) OPWRIGHT_TEN(6)
        default: the_schema_and_the_kernel_differ<Differing>();
    }
#undef OPWRIGHT_TEN
#undef OPWRIGHT_CASE
    // clang-format on
    static_assert(type_count == 70, "one case per type");
}

template <std::size_t index, std::size_t takes>
struct InParameter {
    template <std::size_t code>
    using In = at<parameter<index>, the_schema_says<schema_text<code>>, the_kernel_takes<kernel_text<takes>>,
                  use<kernel_text<code>>>;
};

template <std::size_t index, std::size_t returns>
struct InResult {
    template <std::size_t code>
    using In = at<result<index>, the_schema_says<schema_text<code>>, the_kernel_returns<kernel_text<returns>>,
                  use<kernel_text<code>>>;
};

template <std::size_t index>
struct InWriting {
    template <std::size_t code>
    using In = at<parameter<index>, the_schema_says<schema_text<code>>, the_kernel_takes<"Tensor&">,
                  use<"const Tensor&, or Tensor(a!) in the schema">>;
};

template <std::size_t kernel>
struct InParameterCount {
    template <std::size_t schema>
    using In = at<the_schema_has_parameters<schema>, the_kernel_has_parameters<kernel>>;
};

template <std::size_t kernel>
struct InResultCount {
    template <std::size_t schema>
    using In = at<the_schema_has_results<schema>, the_kernel_has_results<kernel>>;
};

template <class Kernel, std::size_t... parameter, std::size_t... result>
constexpr void refuse_difference(const char* schema, const Difference& difference,
                                 std::index_sequence<parameter...> /*indices*/,
                                 std::index_sequence<result...> /*indices*/) {
    using Kind = Difference::Kind;
    const std::size_t index = difference.index;
    [[maybe_unused]] const std::size_t code = code_of(difference.says.type);
    [[maybe_unused]] const char* const says = schema_name(difference.says.type);
    [[maybe_unused]] const char* const use = kernel_name(difference.says.type);
    switch (difference.kind) {
        case Kind::None:
            break;
        case Kind::Malformed:
            the_schema_is_malformed();
            break;
        case Kind::ParameterCount:
            refuse<InParameterCount<Kernel::signature.parameter_count>>(difference.count, schema, "", "", "");
            break;
        case Kind::ResultCount:
            refuse<InResultCount<Kernel::signature.result_count>>(difference.count, schema, "", "", "");
            break;
        case Kind::Parameter:
            ((index == parameter ? refuse<InParameter<parameter, code_of(Kernel::signature.parameters[parameter])>>(
                                       code, schema, says, kernel_name(Kernel::signature.parameters[parameter]), use)
                                 : void()),
             ...);
            break;
        case Kind::Mutated:
            ((index == parameter ? refuse<InWriting<parameter>>(code, schema, says, "Tensor&",
                                                                "const Tensor&, or Tensor(a!) in the schema")
                                 : void()),
             ...);
            break;
        case Kind::Result:
            ((index == result ? refuse<InResult<result, code_of(Kernel::signature.results[result])>>(
                                    code, schema, says, kernel_name(Kernel::signature.results[result]), use)
                              : void()),
             ...);
            break;
    }
}

// Does not compile if the kernel does not match the schema.
template <class Kernel>
constexpr void require_fit(const char* schema, const Schema& parts) {
    if (!Kernel::signature.carried()) return;
    refuse_difference<Kernel>(schema, compare(parts, Kernel::signature),
                              std::make_index_sequence<Kernel::signature.parameter_count>(),
                              std::make_index_sequence<Kernel::signature.result_count>());
}

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

// Registers operators with torch, through its stable ABI. Use the macros at global scope, outside any namespace.
//
//     OPWRIGHT_LIBRARY(ns, m) {
//         m.def("f", OPWRIGHT_FN(f));                              // the schema is inferred from the C++ signature
//         m.def("g(Tensor x, float a=1.0) -> Tensor", OPWRIGHT_FN(g));    // the schema is checked against it
//         m.def("h(Tensor x) -> Tensor");                          // its kernels are registered elsewhere
//     }
//     OPWRIGHT_IMPL(ns, CUDA, m) { m.impl("h", OPWRIGHT_FN(h_cuda)); }
//
// Checked at compile time: the types in the C++ signature, the schema against the signature and, if
// opwright::definitions<"ns"> is known, the name and schema of what OPWRIGHT_IMPL implements. Otherwise the two are
// compared when the shared object is loaded. Loading never throws: `opwright_load_error()` returns the error, and one
// line on stderr reports it.
#pragma once

#include <opwright/block.h>
#include <opwright/box.h>
#include <opwright/refuse.h>
#include <opwright/registry.h>
#include <opwright/schema.h>
#include <opwright/types.h>

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// The argument of `def`, an operator's name or its schema, checked at compile time.
template <class Kernel>
struct DefinitionText {
    std::string_view text;

    template <std::size_t size>
    consteval DefinitionText(const char (&literal)[size]) : text(literal, size - 1) {
        if (is_operator_name(text)) return;
        const Schema schema = read_schema(text);
        if (!schema.well_formed) the_schema_is_malformed();
        require_fit<Kernel>(literal, schema);
    }
};

struct SchemaText {
    std::string_view text;

    template <std::size_t size>
    consteval SchemaText(const char (&literal)[size]) : text(literal, size - 1) {
        if (!read_schema(text).well_formed) the_schema_is_malformed();
    }
};

template <text ns, std::size_t index>
inline constexpr auto definition_text = as_text<definitions<ns>[index].size()>(definitions<ns>[index]);

// One function per definition, because compilers print its template argument.
template <text schema, class Kernel>
constexpr void check_against(const char* definition) {
    require_fit<Kernel>(definition, read_schema(schema.view()));
}

// The boxed call of a kernel. The boxed call of a backward operator also lays out the gradients.
template <text ns, class Kernel>
auto call_of(std::string_view name) {
    auto* call = &Kernel::template call<>;
    const auto choose = [&]<int... of>(const GradientLayout<of...>& layout) {
        constexpr bool fits = sizeof...(of) == Kernel::signature.result_count;
        if constexpr (fits) {
            if (layout.name == name) call = &Kernel::template call<AsArguments<of...>>;
        }
    };
    std::apply([&](const auto&... layout) { (choose(layout), ...); }, gradient_layouts<ns>);
    return call;
}

// The argument of `impl`, checked at compile time if the namespace's definitions are known.
template <text ns, class Kernel>
struct ImplementedName {
    std::string_view text;

    template <std::size_t size>
    consteval ImplementedName(const char (&literal)[size]) : text(literal, size - 1) {
        if (!is_operator_name(text)) the_schema_is_malformed();
        constexpr std::size_t count = definitions<ns>.size();
        if constexpr (count > 0) check(std::make_index_sequence<count>());
    }

  private:
    template <std::size_t... index>
    consteval void check(std::index_sequence<index...> /*indices*/) const {
        const bool found =
            ((read_schema(definitions<ns>[index]).name == text &&
              (check_against<definition_text<ns, index>, Kernel>(definitions<ns>[index].data()), true)) ||
             ...);
        if (!found) no_such_operator_is_defined<the_namespace<ns>, defines<definition_text<ns, index>>...>();
    }
};

}  // namespace detail

// `m` in OPWRIGHT_LIBRARY.
template <detail::text ns>
class LibraryBlock {
  public:
    LibraryBlock(detail::Namespace& into, const detail::Block& block) : into_(into), block_(block) {}

    // Defines an operator and its kernel for one dispatch key: CPU if the kernel accepts a tensor, because a kernel
    // that reads memory must not receive a fake tensor or one on another device; otherwise every device.
    template <class Kernel>
    void def(detail::DefinitionText<std::type_identity_t<Kernel>> schema_or_name, Kernel kernel) {
        def(schema_or_name, kernel, Kernel::signature.takes_a_tensor() ? "CPU" : "CompositeExplicitAutograd");
    }

    template <class Kernel>
    void def(detail::DefinitionText<std::type_identity_t<Kernel>> schema_or_name, Kernel /*kernel*/, const char* key) {
        const std::string_view text = schema_or_name.text;
        const bool is_name = detail::is_operator_name(text);
        if (is_name) {
            detail::add_definition_of(into_, text, Kernel::signature, block_.location);
        } else {
            detail::add_definition(into_, text.data(), block_.location);
        }
        const std::string_view name = is_name ? text : detail::read_schema(text).name;
        const detail::Implementation implementation{name, key, &Kernel::template call<>, &Kernel::signature,
                                                    block_.location};
        detail::add_implementation(into_, implementation);
    }

    // Defines an operator only; OPWRIGHT_IMPL or Python registers its kernels.
    void def(detail::SchemaText schema) { detail::add_definition(into_, schema.text.data(), block_.location); }

  private:
    detail::Namespace& into_;
    const detail::Block& block_;
};

// `m` in OPWRIGHT_IMPL.
template <detail::text ns>
class ImplBlock {
  public:
    ImplBlock(detail::Namespace& into, const detail::Block& block) : into_(into), block_(block) {}

    template <class Kernel>
    void impl(detail::ImplementedName<ns, std::type_identity_t<Kernel>> name, Kernel /*kernel*/) {
        const detail::Implementation implementation{name.text, block_.key, detail::call_of<ns, Kernel>(name.text),
                                                    &Kernel::signature, block_.location};
        detail::add_implementation(into_, implementation);
    }

  private:
    detail::Namespace& into_;
    const detail::Block& block_;
};

}  // namespace opwright OPWRIGHT_HIDDEN

#define OPWRIGHT_FILLED_BLOCK(Kind, ns, key, m, id)                                                               \
    static void OPWRIGHT_JOIN(opwright_body_, id)(::opwright::Kind<OPWRIGHT_STRING(ns)> & m);                     \
    OPWRIGHT_BLOCK(ns, key, id, [](::opwright::detail::Namespace& into, const ::opwright::detail::Block& block) { \
        ::opwright::Kind<OPWRIGHT_STRING(ns)> recorder(into, block);                                              \
        OPWRIGHT_JOIN(opwright_body_, id)(recorder);                                                              \
    })                                                                                                            \
    static void OPWRIGHT_JOIN(opwright_body_, id)([[maybe_unused]] ::opwright::Kind<OPWRIGHT_STRING(ns)> & m)

// Defines the operators of a namespace. Use it once per shared object.
#define OPWRIGHT_LIBRARY(ns, m) \
    OPWRIGHT_SHOW_NAMESPACE(ns) \
    OPWRIGHT_FILLED_BLOCK(LibraryBlock, ns, nullptr, m, __COUNTER__)

// Registers kernels for one dispatch key (CPU, CUDA, Meta, ...). Use it once per key, in any number of sources.
#define OPWRIGHT_IMPL(ns, key, m) OPWRIGHT_FILLED_BLOCK(ImplBlock, ns, OPWRIGHT_STRING(key), m, __COUNTER__)

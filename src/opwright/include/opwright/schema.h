// Operator schemas, parsed at compile time: "name.overload(Tensor x, int[2] size=[1, 2], *, str? mode=None) -> Tensor".
//
// This header does not depend on torch, so that every source can include the generated table of definitions.
#pragma once

#include <opwright/visibility.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

namespace opwright OPWRIGHT_HIDDEN {

namespace detail {

// A string literal as a template argument.
template <std::size_t size>
struct text {
    char characters[size];

    consteval text(const char (&literal)[size]) {
        for (std::size_t i = 0; i < size; ++i) characters[i] = literal[i];
    }

    constexpr std::string_view view() const { return {characters, size - 1}; }
};

// The types that torch's stable ABI supports. `Other` is every type that it does not support.
enum class Base : std::uint8_t {
    Tensor,
    Int,
    Float,
    Bool,
    Str,
    ScalarType,
    Device,
    Layout,
    MemoryFormat,
    Other,
};

// The marks `?` and `[]` of a type.
enum class Shape : std::uint8_t {
    Plain,
    Optional,                // T?
    List,                    // T[]
    OptionalList,            // T[]?
    ListOfOptional,          // T?[]
    OptionalListOfOptional,  // T?[]?
    Other,
};

struct Type {
    Base base = Base::Other;
    Shape shape = Shape::Plain;
    bool mutated = false;  // the schema's `(a!)`, the kernel's `Tensor&`

    constexpr bool same_value(const Type& other) const { return base == other.base && shape == other.shape; }
};

struct Argument {
    Type type;
    std::string_view name;  // empty for a result without a name
};

constexpr bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n';
}

constexpr bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

constexpr std::string_view trimmed(std::string_view s) {
    while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
    while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
    return s;
}

// Replaces std::string_view::find, which compares a pointer with null: under -fsanitize=undefined, g++ rejects such a
// comparison in a constant expression.
constexpr std::size_t find(std::string_view s, char wanted) {
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (s[i] == wanted) return i;
    }
    return std::string_view::npos;
}

// The index of the first `wanted` outside quotes and brackets; npos if there is none or a bracket is not closed.
constexpr std::size_t find_outside(std::string_view s, char wanted) {
    int depth = 0;
    for (std::size_t i = 0; i < s.size(); ++i) {
        const char c = s[i];
        if (c == '"' || c == '\'') {
            for (++i; i < s.size() && s[i] != c; ++i) {
                if (s[i] == '\\') ++i;
            }
        } else if (depth == 0 && c == wanted) {
            return i;
        } else if (c == '(' || c == '[') {
            ++depth;
        } else if (c == ')' || c == ']') {
            --depth;
        }
    }
    return std::string_view::npos;
}

constexpr Base base_of(std::string_view word) {
    if (word == "Tensor") return Base::Tensor;
    if (word == "int" || word == "SymInt") return Base::Int;
    if (word == "float") return Base::Float;
    if (word == "bool") return Base::Bool;
    if (word == "str") return Base::Str;
    if (word == "ScalarType") return Base::ScalarType;
    if (word == "Device") return Base::Device;
    if (word == "Layout") return Base::Layout;
    if (word == "MemoryFormat") return Base::MemoryFormat;
    return Base::Other;
}

constexpr Shape made_optional(Shape shape) {
    if (shape == Shape::Plain) return Shape::Optional;
    if (shape == Shape::List) return Shape::OptionalList;
    if (shape == Shape::ListOfOptional) return Shape::OptionalListOfOptional;
    return Shape::Other;
}

constexpr Shape made_list(Shape shape) {
    if (shape == Shape::Plain) return Shape::List;
    if (shape == Shape::Optional) return Shape::ListOfOptional;
    return Shape::Other;
}

// Parses one comma-separated piece: `Tensor(a!)? name=default`.
constexpr Argument read_argument(std::string_view piece) {
    Argument argument;
    std::size_t end = 0;
    while (end < piece.size() && (is_word(piece[end]) || piece[end] == '.')) ++end;
    argument.type.base = base_of(piece.substr(0, end));
    piece.remove_prefix(end);
    while (!piece.empty() && (piece[0] == '?' || piece[0] == '[' || piece[0] == '(')) {
        if (piece[0] == '?') {
            argument.type.shape = made_optional(argument.type.shape);
            piece.remove_prefix(1);
            continue;
        }
        if (piece[0] == '[') argument.type.shape = made_list(argument.type.shape);
        const bool alias = piece[0] == '(';
        const char closing = alias ? ')' : ']';
        piece.remove_prefix(1);
        const std::size_t close = find_outside(piece, closing);
        if (close == std::string_view::npos) return {};
        if (alias) argument.type.mutated |= find(piece.substr(0, close), '!') != std::string_view::npos;
        piece.remove_prefix(close + 1);
    }
    piece = trimmed(piece);
    end = 0;
    while (end < piece.size() && is_word(piece[end])) ++end;
    argument.name = piece.substr(0, end);
    return argument;
}

// Iterates over the arguments in "Tensor x, *, int n=1"; skips the keyword-only marker `*`.
class Arguments {
  public:
    constexpr explicit Arguments(std::string_view list) : rest_(trimmed(list)) {}

    constexpr bool next(Argument& argument) {
        while (!rest_.empty()) {
            const std::size_t comma = find_outside(rest_, ',');
            const std::string_view piece = trimmed(rest_.substr(0, comma));
            rest_ = comma == std::string_view::npos ? std::string_view{} : trimmed(rest_.substr(comma + 1));
            if (piece == "*") continue;
            argument = read_argument(piece);
            return true;
        }
        return false;
    }

  private:
    std::string_view rest_;
};

// The three parts of a schema, unparsed.
struct Schema {
    std::string_view name;  // with its overload: "name.overload"
    std::string_view arguments;
    std::string_view results;
    bool well_formed = false;
};

constexpr bool is_operator_name(std::string_view name) {
    int dots = 0;
    bool first = true;
    for (const char c : name) {
        if (c == '.' ? (first || ++dots > 1) : (!is_word(c) || (first && c >= '0' && c <= '9'))) return false;
        first = c == '.';
    }
    return !first;
}

constexpr Schema read_schema(std::string_view source) {
    Schema schema;
    const std::size_t open = find(source, '(');
    if (open == std::string_view::npos) return schema;
    schema.name = trimmed(source.substr(0, open));
    std::string_view rest = source.substr(open + 1);
    const std::size_t close = find_outside(rest, ')');
    if (close == std::string_view::npos) return schema;
    schema.arguments = rest.substr(0, close);
    rest = trimmed(rest.substr(close + 1));
    if (!rest.starts_with("->")) return schema;
    rest = trimmed(rest.substr(2));
    if (rest.starts_with('(')) {
        const std::size_t end = find_outside(rest.substr(1), ')');
        if (end == std::string_view::npos) return schema;
        schema.results = rest.substr(1, end);
    } else {
        schema.results = rest;
        if (rest.empty()) return schema;
    }
    schema.well_formed = is_operator_name(schema.name);
    return schema;
}

}  // namespace detail

// The schemas of a namespace, if known when its sources are compiled. Generated from op.py:
//     template <>
//     inline constexpr auto opwright::definitions<"ns"> = opwright::schemas("f(Tensor x) -> Tensor", ...);
template <detail::text ns>
inline constexpr std::array<std::string_view, 0> definitions{};

template <std::size_t... sizes>
consteval std::array<std::string_view, sizeof...(sizes)> schemas(const char (&... literals)[sizes]) {
    return {std::string_view(literals, sizes - 1)...};
}

// For each result of a backward operator, the index of the argument whose gradient it is, or -1 if the operator does
// not take that argument. The gradient gets the argument's layout: see gradient_layout.h.
template <int... arguments>
struct GradientLayout {
    std::string_view name;
};

// The backward operators of a namespace. Generated from op.py:
//     template <>
//     inline constexpr auto opwright::gradient_layouts<"ns"> =
//         std::tuple{opwright::GradientLayout<1>{"f_backward"}, ...};
template <detail::text ns>
inline constexpr std::tuple<> gradient_layouts{};

}  // namespace opwright OPWRIGHT_HIDDEN

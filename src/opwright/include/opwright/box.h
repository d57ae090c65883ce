// Calls a typed kernel through torch's boxed calling convention: a stack of 64-bit values that the kernel owns.
//
// Every value on the stack is released exactly once, even if something throws. Strings and boxed optionals and lists
// are unpacked here because torch's `to<std::string>` never frees its copy (as of 2.13).
#pragma once

#include <opwright/common.h>
#include <opwright/types.h>
#include <torch/csrc/stable/c/shim.h>
#include <torch/csrc/stable/stableivalue_conversions.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// True for values stored directly in the 64 bits, which need no release.
template <class S>
inline constexpr bool owns_nothing =
    !std::is_same_v<S, Tensor> && !std::is_same_v<S, std::string> && !is_optional<S> && !is_list<S>;

struct StringOwner {
    StringHandle handle;
    ~StringOwner() { torch_delete_string(handle); }
};

template <class S>
S take(StableIValue raw);

// Releases a value that will not be taken.
template <class S>
void drop(StableIValue raw) noexcept {
    if constexpr (!owns_nothing<S>) {
        try {
            take<S>(raw);
        } catch (const std::exception&) {  // `take` released the value before it threw
        }
    }
}

template <class S>
S take_list(StableIValue raw) {
    using Element = typename S::value_type;
    if constexpr (owns_nothing<Element>) {
        return torch::stable::detail::to<S>(raw);
    } else {
        const auto elements = torch::stable::detail::to<std::vector<StableIValue>>(raw);
        struct Rest {
            const std::vector<StableIValue>& elements;
            std::size_t taken = 0;
            ~Rest() {
                for (; taken < elements.size(); ++taken) drop<Element>(elements[taken]);
            }
        } rest{elements};
        S list;
        list.reserve(elements.size());
        while (rest.taken < elements.size()) list.push_back(take<Element>(elements[rest.taken++]));
        return list;
    }
}

// Takes a value off the stack; the value is released even if this throws.
template <class S>
S take(StableIValue raw) {
    if constexpr (std::is_same_v<S, std::string>) {
        const StringOwner owner{torch::stable::detail::to<StringHandle>(raw)};
        const char* data = nullptr;
        std::size_t length = 0;
        TORCH_ERROR_CODE_CHECK(torch_string_c_str(owner.handle, &data));
        TORCH_ERROR_CODE_CHECK(torch_string_length(owner.handle, &length));
        return std::string(data, length);
    } else if constexpr (is_optional<S>) {
        const auto inner = torch::stable::detail::to<std::optional<StableIValue>>(raw);  // frees the box
        if (!inner) return std::nullopt;
        S value(take<typename S::value_type>(*inner));
        if constexpr (std::is_same_v<typename S::value_type, Tensor>) {
            if (!value->defined()) return std::nullopt;  // C++ autograd's form of a missing gradient
        }
        return value;
    } else if constexpr (is_list<S>) {
        return take_list<S>(raw);
    } else {
        return torch::stable::detail::to<S>(raw);
    }
}

// Converts a result to a value for the stack.
template <class R>
StableIValue give(const R& result) {
    if constexpr (std::is_same_v<R, std::vector<bool>>) {  // packed, so there is no array of bool to refer to
        std::vector<StableIValue> elements;
        elements.reserve(result.size());
        for (const bool element : result) elements.push_back(give(element));
        return torch::stable::detail::from(elements);
    } else if constexpr (std::is_same_v<R, std::optional<std::vector<bool>>>) {
        return torch::stable::detail::from(result ? std::optional(give(*result)) : std::nullopt);
    } else {
        return torch::stable::detail::from(result);
    }
}

// Passes a stored argument to the kernel: as a view if the kernel accepts a view, otherwise as the value itself.
template <class P, class S>
auto pass(S& stored) -> std::conditional_t<std::is_same_v<std::remove_cvref_t<P>, S>, P, std::remove_cvref_t<P>> {
    using Bare = std::remove_cvref_t<P>;
    if constexpr (!std::is_same_v<Bare, S>) {
        if constexpr (is_optional<S>) {
            return stored ? Bare(*stored) : Bare();
        } else {
            return Bare(stored);
        }
    } else if constexpr (std::is_lvalue_reference_v<P>) {
        return stored;
    } else {
        return std::move(stored);
    }
}

[[noreturn]] OPWRIGHT_COMMON void wrong_count(const char* of, std::uint64_t schema, std::size_t kernel);

template <class R>
struct Results {
    static constexpr std::array<Type, 1> types{Result<0, R>::type};

    template <class Call>
    static void give_all(StableIValue* stack, Call&& call) {
        stack[0] = give<R>(call());
    }
};

template <>
struct Results<void> {
    static constexpr std::array<Type, 0> types{};

    template <class Call>
    static void give_all(StableIValue* /*stack*/, Call&& call) {
        call();
    }
};

template <class... R>
struct Results<std::tuple<R...>> {
    template <std::size_t... index>
    static constexpr std::array<Type, sizeof...(R)> types_of(std::index_sequence<index...> /*indices*/) {
        return {Result<index, R>::type...};
    }
    static constexpr std::array<Type, sizeof...(R)> types = types_of(std::index_sequence_for<R...>());

    template <class Call>
    static void give_all(StableIValue* stack, Call&& call) {
        std::apply([stack](const R&... result) mutable { ((*stack++ = give<R>(result)), ...); }, call());
    }
};

// The layout of the results: as the kernel returns them, or each with the layout of the argument whose gradient it is
// (see gradient_layout.h).
struct AsReturned {};
template <int... of>
struct AsArguments;

template <auto function, class R, class Indices, class... P>
struct Boxed;

template <auto function, class R, std::size_t... index, class... P>
struct Boxed<function, R, std::index_sequence<index...>, P...> {
    static constexpr std::array<Type, sizeof...(P)> parameters{Parameter<index, P>::type...};
    static constexpr Signature signature{parameters.data(), parameters.size(), Results<R>::types.data(),
                                         Results<R>::types.size()};

    template <std::size_t at>
    using Storage = typename Parameter<at, std::tuple_element_t<at, std::tuple<P...>>>::Storage;

    // Takes the arguments in order, and releases the rest if taking one of them throws.
    struct Arguments {
        StableIValue* stack;
        std::size_t taken = 0;

        template <std::size_t at>
        Storage<at> next() {
            taken = at + 1;
            return take<Storage<at>>(stack[at]);
        }
        ~Arguments() { ((index < taken ? void() : drop<Storage<index>>(stack[index])), ...); }
    };

    template <class As = AsReturned>
    static void call(StableIValue* stack, std::uint64_t arguments, std::uint64_t results) {
        if (arguments != sizeof...(P)) wrong_count("arguments", arguments, sizeof...(P));
        if (results != signature.result_count) wrong_count("results", results, signature.result_count);
        Arguments waiting{stack};
        // Braces, because they evaluate the elements from left to right.
        std::tuple<Storage<index>...> values{waiting.template next<index>()...};
        const auto run = [&]() -> R { return function(pass<P>(std::get<index>(values))...); };
        if constexpr (std::is_same_v<As, AsReturned> || std::is_void_v<R>) {
            Results<R>::give_all(stack, run);
        } else {
            const auto kept = As::kept(values);
            Results<R>::give_all(stack, [&]() -> R { return As::laid_out(run(), kept); });
        }
    }
};

template <auto function, class T>
struct Function {
    static_assert(sizeof(T) == 0, "opwright: OPWRIGHT_FN expects the name of a free function");
};

template <auto function, class R, class... P>
struct Function<function, R (*)(P...)> : Boxed<function, R, std::index_sequence_for<P...>, P...> {};

template <auto function, class R, class... P>
struct Function<function, R (*)(P...) noexcept> : Boxed<function, R, std::index_sequence_for<P...>, P...> {};

// A function as a kernel: its signature and its boxed call.
template <auto function>
struct kernel : Function<function, decltype(function)> {};

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

#define OPWRIGHT_FN(...) \
    ::opwright::detail::kernel<&__VA_ARGS__> {}

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/common/box.inc>
#endif

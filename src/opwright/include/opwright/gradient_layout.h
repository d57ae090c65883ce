// Lays out each gradient that a kernel returns like its argument, with the strides of torch.empty_like(argument).
//
// The fake kernel of a backward operator promises these strides, and torch.compile relies on them. A kernel may still
// return row-major gradients: a gradient with other strides is copied, which happens only if the argument is not
// row-major either.
#pragma once

#include <opwright/box.h>
#include <opwright/common.h>
#include <opwright/types.h>
#include <torch/csrc/stable/ops.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

// Leaves a gradient that does not match its argument unchanged: `opwright check` reports it.
OPWRIGHT_COMMON void lay_out(Tensor& gradient, const Tensor& argument);

inline void lay_out(Tensor& gradient, const std::optional<Tensor>& argument) {
    if (argument) lay_out(gradient, *argument);
}

template <class Argument>
void lay_out(std::vector<Tensor>& gradients, const std::vector<Argument>& arguments) {
    if (gradients.size() != arguments.size()) return;
    for (std::size_t i = 0; i < gradients.size(); ++i) lay_out(gradients[i], arguments[i]);
}

template <class T>
inline constexpr bool holds_tensors =
    std::is_same_v<T, Tensor> || std::is_same_v<T, std::optional<Tensor>> || std::is_same_v<T, std::vector<Tensor>> ||
    std::is_same_v<T, std::vector<std::optional<Tensor>>>;

// Lays out each result like the argument at that index; -1 means no argument.
template <int... of>
struct AsArguments {
    // Keeps the arguments alive while the kernel runs, because it may accept them by value.
    template <class Values>
    static auto kept(const Values& values) {
        return std::tuple{argument<of>(values)...};
    }

    template <class R, class Kept>
    static R laid_out(R results, const Kept& kept) {
        each(results, kept, std::make_index_sequence<sizeof...(of)>());
        return results;
    }

  private:
    template <int at, class Values>
    static auto argument(const Values& values) {
        if constexpr (at >= 0 && static_cast<std::size_t>(at) < std::tuple_size_v<Values>) {
            return std::get<at>(values);
        } else {
            return false;
        }
    }

    template <class R, class Kept, std::size_t... index>
    static void each(R& results, const Kept& kept, std::index_sequence<index...> /*indices*/) {
        (one(result<index>(results), std::get<index>(kept)), ...);
    }

    template <std::size_t at, class R>
    static auto& result(R& results) {
        return results;
    }

    template <std::size_t at, class... R>
    static auto& result(std::tuple<R...>& results) {
        return std::get<at>(results);
    }

    template <class R, class Argument>
    static void one(R& result, const Argument& argument) {
        constexpr bool are_lists = is_list<R> == is_list<Argument>;
        if constexpr (holds_tensors<R> && holds_tensors<Argument> && are_lists && !is_optional<R>) {
            lay_out(result, argument);
        }
    }
};

}  // namespace detail
}  // namespace opwright OPWRIGHT_HIDDEN

#if !defined(OPWRIGHT_COMMON_ELSEWHERE)
#include <opwright/common/gradient_layout.inc>
#endif

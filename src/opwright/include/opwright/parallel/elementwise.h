// Loops over the elements of tensors.
#pragma once

#include <opwright/check.h>
#include <opwright/parallel/dtypes.h>
#include <opwright/parallel/operands.h>
#include <opwright/parallel/pieces.h>
#include <opwright/parallel/split.h>
#include <opwright/simd.h>
#include <opwright/types.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace opwright OPWRIGHT_HIDDEN {
namespace detail {

template <class>
inline constexpr bool is_tuple = false;
template <class... Each>
inline constexpr bool is_tuple<std::tuple<Each...>> = true;

// What a formula returns for vectors: one vector, or a std::tuple of vectors.
template <class Formula, class... Tensors>
using FormulaResult = decltype(std::declval<const Formula&>()(
    std::declval<std::conditional_t<true, simd::Vector<float, 16>, Tensors>>()...));

// The loop for one element type and one formula. The formula is instantiated only once per vector width, because that
// dominates compile time: the last vector of a piece is moved back so that it is full, and computes some elements
// twice.
template <class T, std::size_t results, std::size_t count, class Formula>
struct Elementwise {
    const Formula& formula;
    const Operands& operands;

    // The elements from `begin` to `end`, counted over all rows.
    template <int bytes>
    OPWRIGHT_INLINE void run(std::int64_t begin, std::int64_t end) const {
        run_pieces<bytes>(begin, end, std::make_index_sequence<count>(), std::make_index_sequence<results>());
    }

  private:
    template <int bytes, std::size_t... t, std::size_t... k>
    OPWRIGHT_INLINE void run_pieces(std::int64_t begin, std::int64_t end, std::index_sequence<t...>,
                                    std::index_sequence<k...>) const {
        using V = simd::Vector<simd::Wide<T>, bytes>;
        Pieces::Copies copies[count];
        Pieces pieces(operands, count, results, sizeof(T), V::lanes, begin, end, copies);
        while (pieces.next()) {
            const std::array<const T*, count> from{pieces.template source<T>(t)...};
            const std::array<std::int64_t, count> moves{pieces.moves(t)...};
            const std::array<T*, results> into{pieces.template result<T>(k)...};
            const std::int64_t last = pieces.size() - V::lanes;
            for (std::int64_t next = 0; next < pieces.size(); next += V::lanes) {
                const std::int64_t i = std::min(next, last);
                const auto result = formula(V::load(from[t] + (i & moves[t]))...);
                if constexpr (is_tuple<std::remove_const_t<decltype(result)>>) {
                    ((into[k] ? V(std::get<k>(result)).store(into[k] + i) : void()), ...);
                } else {
                    V(result).store(into[0] + i);
                }
            }
        }
    }
};

// Runs the loop for the dtype of the tensors, and allocates the wanted results.
template <std::size_t results, class... Types, class Formula, std::size_t count>
std::array<Tensor, results> loop_over_elements(const Formula& formula, const std::array<const Tensor*, count>& tensors,
                                               const std::array<bool, results>& wanted) {
    static_assert(count <= most_tensors && results <= most_tensors,
                  "opwright: a loop accepts and returns at most 16 tensors");
    return with_dtype<Types...>("elementwise", DeviceType::CPU, tensors, [&](auto type) {
        using T = typename decltype(type)::Type;
        std::array<Tensor, results> made;
        const Operands operands = elementwise_operands(tensors, wanted, made.data());
        const Elementwise<T, results, count, Formula> job{formula, operands};
        run_in_parallel(job, operands.rows.rows * operands.rows.row_size, elements_per_thread);
        return made;
    });
}

}  // namespace detail

// Returns a new tensor of formula(a, b, ...) for the elements a, b, ... of the broadcast tensors.
//
// The formula is an inlined generic lambda that accepts one vector per tensor and returns a vector:
//
//     opwright::elementwise<float, double>([=](auto x, auto y) OPWRIGHT_INLINE { return fma(x, factor, y); }, x, y)
//
// Throws std::runtime_error if a tensor is not on the CPU, if the tensors do not have one dtype among Types, or if
// their shapes do not broadcast.
template <class... Types, class Formula, class... Tensors>
    requires(std::same_as<Tensors, Tensor> && ...)
Tensor elementwise(const Formula& formula, const Tensor& first, const Tensors&... others) {
    return detail::loop_over_elements<1, Types...>(formula, std::array{&first, &others...}, std::array{true})[0];
}

// The same for a formula that returns a std::tuple of vectors. Returns a std::tuple of tensors. Results whose `wanted`
// flag is false are not computed, and are undefined tensors; a backward skips unneeded gradients this way.
//
// Throws std::runtime_error as above, and if `wanted` does not have one flag for each vector of the tuple.
template <class... Types, class Formula, class... Tensors>
    requires(std::same_as<Tensors, Tensor> && ...)
auto elementwise(const Formula& formula, const std::vector<bool>& wanted, const Tensor& first,
                 const Tensors&... others) {
    using Results = detail::FormulaResult<Formula, Tensor, Tensors...>;
    constexpr std::size_t results = std::tuple_size_v<Results>;
    OPWRIGHT_CHECK(wanted.size() == results, "wanted must have ", results, " flags, got ", wanted.size());
    std::array<bool, results> flags;
    std::copy(wanted.begin(), wanted.end(), flags.begin());
    const std::array<Tensor, results> made =
        detail::loop_over_elements<results, Types...>(formula, std::array{&first, &others...}, flags);
    return std::apply([](const auto&... each) { return std::tuple(each...); }, made);
}

}  // namespace opwright OPWRIGHT_HIDDEN

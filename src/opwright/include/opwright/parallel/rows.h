// Loops over the rows of tensors. Rows run along the last dimension.
#pragma once

#include <opwright/parallel/dtypes.h>
#include <opwright/parallel/operands.h>
#include <opwright/parallel/split.h>
#include <opwright/simd.h>
#include <opwright/types.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace opwright OPWRIGHT_HIDDEN {

// A row of a tensor. If the tensor has one element for the whole row, it is repeated.
template <class T, int bytes>
class Row {
  public:
    using Number = simd::Wide<T>;
    using V = simd::Vector<Number, bytes>;

    OPWRIGHT_INLINE Row(const T* from, std::int64_t size, std::int64_t step) : from_(from), moves_(-step), size_(size) {
        if (step == 0) std::fill_n(copies_, V::lanes, *from);
    }

    OPWRIGHT_INLINE std::int64_t size() const { return size_; }

    // Loads `count` elements starting at `at`; at most one vector.
    OPWRIGHT_INLINE V load(std::int64_t at, std::int64_t count) const {
        return V::load((moves_ == 0 ? copies_ : from_) + (at & moves_), count);
    }

    OPWRIGHT_INLINE Number operator[](std::int64_t at) const { return static_cast<Number>(from_[at & moves_]); }

  private:
    const T* from_;
    std::int64_t moves_;  // a mask: all bits set, or none if there is only one element
    std::int64_t size_;
    T copies_[V::lanes];
};

// A row of a result.
template <class T, int bytes>
class ResultRow {
  public:
    using V = typename Row<T, bytes>::V;

    OPWRIGHT_INLINE ResultRow(T* into, std::int64_t size) : into_(into), size_(size) {}

    // Sets each element to the formula of the rows' elements, one vector at a time.
    template <class Formula, class... Rows>
    OPWRIGHT_INLINE void set(const Formula& formula, const Rows&... rows) const {
        for (std::int64_t at = 0; at < size_; at += V::lanes) {
            const std::int64_t count = std::min<std::int64_t>(V::lanes, size_ - at);
            V(formula(rows.load(at, count)...)).store(into_ + at, count);
        }
    }

  private:
    T* into_;
    std::int64_t size_;
};

// The sum of a formula over the elements of rows; 0 for an empty row. Every 64 vectors, the partial sum is added to a
// double, to limit rounding errors in long rows.
template <class Formula, class T, int bytes, class... Rows>
OPWRIGHT_INLINE inline simd::Wide<T> sum(const Formula& formula, const Row<T, bytes>& first, const Rows&... others) {
    using V = typename Row<T, bytes>::V;
    double total = 0;
    V part = 0;
    std::int64_t vectors = 0;
    for (std::int64_t at = 0; at < first.size(); at += V::lanes) {
        const std::int64_t count = std::min<std::int64_t>(V::lanes, first.size() - at);
        V terms = formula(first.load(at, count), others.load(at, count)...);
        if (count < V::lanes) terms = select(simd::first_lanes<typename V::Element, bytes>(count), terms, V(0));
        part += terms;
        if (++vectors == 64) {
            total += sum_of_lanes(part);
            part = 0;
            vectors = 0;
        }
    }
    return static_cast<simd::Wide<T>>(total + sum_of_lanes(part));
}

template <class T, int bytes>
OPWRIGHT_INLINE inline simd::Wide<T> sum(const Row<T, bytes>& row) {
    return sum([](const auto& x) OPWRIGHT_INLINE { return x; }, row);
}

// The largest value of a formula over the elements of rows: NaN if any value is NaN, -infinity for an empty row.
template <class Formula, class T, int bytes, class... Rows>
OPWRIGHT_INLINE inline simd::Wide<T> max(const Formula& formula, const Row<T, bytes>& first, const Rows&... others) {
    using V = typename Row<T, bytes>::V;
    const V lowest = -std::numeric_limits<typename V::Element>::infinity();
    V largest = lowest;
    for (std::int64_t at = 0; at < first.size(); at += V::lanes) {
        const std::int64_t count = std::min<std::int64_t>(V::lanes, first.size() - at);
        V values = formula(first.load(at, count), others.load(at, count)...);
        if (count < V::lanes) values = select(simd::first_lanes<typename V::Element, bytes>(count), values, lowest);
        largest = max(largest, values);
    }
    return max_of_lanes(largest);
}

template <class T, int bytes>
OPWRIGHT_INLINE inline simd::Wide<T> max(const Row<T, bytes>& row) {
    return max([](const auto& x) OPWRIGHT_INLINE { return x; }, row);
}

// The smallest value: NaN if any value is NaN, infinity for an empty row.
template <class Formula, class T, int bytes, class... Rows>
OPWRIGHT_INLINE inline simd::Wide<T> min(const Formula& formula, const Row<T, bytes>& first, const Rows&... others) {
    return -max([&](const auto&... x) OPWRIGHT_INLINE { return -formula(x...); }, first, others...);
}

template <class T, int bytes>
OPWRIGHT_INLINE inline simd::Wide<T> min(const Row<T, bytes>& row) {
    return min([](const auto& x) OPWRIGHT_INLINE { return x; }, row);
}

namespace detail {

// Computes one row of results, or one number, for each row of the tensors.
template <class T, std::size_t count, bool reduces, class Formula>
struct RowJob {
    const Formula& formula;
    const Rows& rows;
    std::array<const T*, count> from;
    T* into;

    template <int bytes>
    OPWRIGHT_INLINE void run(std::int64_t begin, std::int64_t end) const {
        for (std::int64_t row = begin; row < end; ++row) one_row<bytes>(row, std::make_index_sequence<count>());
    }

  private:
    template <int bytes, std::size_t... t>
    OPWRIGHT_INLINE void one_row(std::int64_t row, std::index_sequence<t...>) const {
        if constexpr (reduces) {
            into[row] =
                static_cast<T>(formula(Row<T, bytes>(from[t] + rows.offset(t, row), rows.row_size, rows.step[t])...));
        } else {
            formula(ResultRow<T, bytes>(into + row * rows.row_size, rows.row_size),
                    Row<T, bytes>(from[t] + rows.offset(t, row), rows.row_size, rows.step[t])...);
        }
    }
};

template <bool reduces, class... Types, class Formula, std::size_t count>
Tensor loop_over_rows(const char* caller, const Formula& formula, const std::array<const Tensor*, count>& tensors) {
    static_assert(count <= most_tensors, "opwright: a loop accepts at most 16 tensors");
    return with_dtype<Types...>(caller, DeviceType::CPU, tensors, [&](auto type) {
        using T = typename decltype(type)::Type;
        Tensor made;
        const Operands operands = row_operands(caller, tensors, reduces, made);
        const RowJob<T, count, reduces, Formula> job{formula, operands.rows, operands.sources<T, count>(),
                                                     operands.results<T, 1>()[0]};
        const std::int64_t row_size = std::max<std::int64_t>(operands.rows.row_size, 1);
        run_in_parallel(job, operands.rows.rows, (elements_per_thread + row_size - 1) / row_size);
        return made;
    });
}

}  // namespace detail

// Returns a new tensor of the shape that the tensors broadcast to, computed row by row. For each row,
// formula(result, a, b, ...) is called with a ResultRow to set and with the rows a, b, ... of the tensors.
//
//     opwright::map_rows<float>(
//         [](auto result, auto x) OPWRIGHT_INLINE {
//             const auto mean = sum(x) / x.size();
//             result.set([=](auto x) OPWRIGHT_INLINE { return x - mean; }, x);
//         },
//         x)
//
// Throws std::runtime_error as elementwise does, and if all tensors have zero dimensions.
template <class... Types, class Formula, class... Tensors>
    requires(std::same_as<Tensors, Tensor> && ...)
Tensor map_rows(const Formula& formula, const Tensor& first, const Tensors&... others) {
    return detail::loop_over_rows<false, Types...>("map_rows", formula, std::array{&first, &others...});
}

// Returns a new tensor with one number per row: formula(a, b, ...) of the rows a, b, ... of the tensors.
//
//     opwright::reduce_rows<float>([](auto x, auto y) OPWRIGHT_INLINE {
//         return sum([](auto x, auto y) OPWRIGHT_INLINE { return x * y; }, x, y);
//     }, x, y)
//
// Throws std::runtime_error as map_rows does.
template <class... Types, class Formula, class... Tensors>
    requires(std::same_as<Tensors, Tensor> && ...)
Tensor reduce_rows(const Formula& formula, const Tensor& first, const Tensors&... others) {
    return detail::loop_over_rows<true, Types...>("reduce_rows", formula, std::array{&first, &others...});
}

}  // namespace opwright OPWRIGHT_HIDDEN

// The elementwise part of one step, without the matrix product: plain rows of numbers, without PyTorch.
//
// A row of `gates` contains the input gate, the output gate and the candidate cell, each `state` wide. A row of
// `products` contains what they are computed from, in the same order, before the bias is added.
#pragma once

#include <algorithm>
#include <cstdint>

#include "vectors.h"

namespace lltm {

// x for x > 0, else exp(x) - 1
template <class V>
OPWRIGHT_INLINE inline V elu(const V& x) {
    // opwright: equivalent [>=]: only the sign of zero depends on it
    return select(x > 0, x, expm1(x));
}

// One step for the elements of one vector.
template <class V>
struct Step {
    V input, output, candidate, cell, h;

    OPWRIGHT_INLINE Step(const V& input_sum, const V& output_sum, const V& candidate_sum, const V& old_cell)
        : input(sigmoid(input_sum)),
          output(sigmoid(output_sum)),
          candidate(elu(candidate_sum)),
          cell(fma(candidate, input, old_cell)),
          h(tanh(cell) * output) {}
};

// Rows with any stride, whose elements are adjacent or all the same, as in the gradient of a sum. Null means zeros.
template <class T>
struct Rows {
    const T* data = nullptr;
    std::int64_t stride = 0;     // opwright: equivalent [1]: not read without data
    bool is_one_number = false;  // opwright: equivalent [true]: not read without data

    template <class V>
    OPWRIGHT_INLINE V load(std::int64_t row, std::int64_t column, std::int64_t count) const {
        if (data == nullptr) return V(0);
        const T* start = data + row * stride;
        if (is_one_number) return V(static_cast<typename V::Element>(*start));
        return V::load(start + column, count);
    }
};

// The new state and the new cell from the products, over rows. The gates are null if they are not needed; they may
// share the memory of products of the same type.
template <class T, class Product = T>
struct Forward {
    const Product* products;
    const T* bias;
    const T* old_cell;
    T* new_h;
    T* new_cell;
    T* gates;
    std::int64_t state;

    template <int bytes>
    OPWRIGHT_INLINE void run(std::int64_t begin, std::int64_t end) const {
        using V = Vector<Wide<T>, bytes>;
        for (std::int64_t row = begin; row < end; ++row) {
            over<V>(state, [&](std::int64_t column, auto count) OPWRIGHT_INLINE {
                const std::int64_t here = row * state + column;
                const std::int64_t gate = row * 3 * state + column;
                const auto sum = [&](std::int64_t which) OPWRIGHT_INLINE {
                    return V::load(products + gate + which * state, count) +
                           V::load(bias + which * state + column, count);
                };
                const Step<V> step(sum(0), sum(1), sum(2), V::load(old_cell + here, count));
                step.cell.store(new_cell + here, count);
                step.h.store(new_h + here, count);
                if (gates == nullptr) return;
                step.input.store(gates + gate, count);
                step.output.store(gates + gate + state, count);
                step.candidate.store(gates + gate + 2 * state, count);
            });
        }
    }
};

// The gradients of a step's products and of its old cell, from those of its results, over rows. Gradients from two
// sources are added.
template <class T>
struct Backward {
    Rows<T> of_new_h[2];
    Rows<T> of_new_cell[2];
    Rows<T> of_gates;
    const T* gates;
    const T* new_cell;
    T* to_products;
    T* to_old_cell;  // null if it is not needed
    std::int64_t state;

    template <int bytes>
    OPWRIGHT_INLINE void run(std::int64_t begin, std::int64_t end) const {
        using V = Vector<Wide<T>, bytes>;
        for (std::int64_t row = begin; row < end; ++row) {
            over<V>(state, [&](std::int64_t column, auto count) OPWRIGHT_INLINE {
                const std::int64_t here = row * state + column;
                const std::int64_t gate = row * 3 * state + column;
                const auto both = [&](const Rows<T>* two) OPWRIGHT_INLINE {
                    return two[0].template load<V>(row, column, count) + two[1].template load<V>(row, column, count);
                };
                const auto of_gate = [&](std::int64_t which) OPWRIGHT_INLINE {
                    return of_gates.template load<V>(row, column + which * state, count);
                };
                const auto input = V::load(gates + gate, count);
                const auto output = V::load(gates + gate + state, count);
                const auto candidate = V::load(gates + gate + 2 * state, count);
                const auto t = tanh(V::load(new_cell + here, count));
                const auto of_h = both(of_new_h);
                const auto of_cell = both(of_new_cell) + of_h * output * (1 - t * t);
                const auto of_input = candidate * of_cell + of_gate(0);
                const auto of_output = t * of_h + of_gate(1);
                const auto of_candidate = input * of_cell + of_gate(2);
                (of_input * input * (1 - input)).store(to_products + gate, count);
                (of_output * output * (1 - output)).store(to_products + gate + state, count);
                // For x <= 0 the candidate is exp(x) - 1, and its derivative is exp(x).
                // opwright: equivalent [>=]: at zero, both are the same
                select(candidate > 0, of_candidate, of_candidate * (candidate + 1))
                    .store(to_products + gate + 2 * state, count);
                if (to_old_cell != nullptr) of_cell.store(to_old_cell + here, count);
            });
        }
    }
};

// The sum of rows, which is the gradient of a bias, over columns: no two threads add to the same element.
template <class T>
struct SumOfRows {
    const T* rows;
    T* into;
    std::int64_t count;
    std::int64_t width;

    template <int bytes>
    OPWRIGHT_INLINE void run(std::int64_t begin, std::int64_t end) const {
        using V = Vector<Wide<T>, bytes>;
        // Several vectors at a time, so that rows are read in long pieces.
        constexpr int wide = 8;  // opwright: equivalent: only the speed depends on it
        std::int64_t column = begin;
        // opwright: equivalent [<]: only the speed depends on it
        for (; column + wide * V::lanes <= end; column += wide * V::lanes)
            sum<V, wide>(column, std::integral_constant<std::int64_t, V::lanes>());
        over<V>(end - column,
                [&](std::int64_t first, auto lanes) OPWRIGHT_INLINE { sum<V, 1>(column + first, lanes); });
    }

  private:
    template <class V, int vectors, class Lanes>
    OPWRIGHT_INLINE void sum(std::int64_t column, Lanes lanes) const {
        // Sums of sums: a single sum over many thousand rows would lose the last digits of each.
        constexpr std::int64_t block_rows = 256;  // opwright: equivalent: only rounding depends on it
        V total[vectors];
#pragma GCC unroll 8
        for (V& one : total) one = V(0);
        // opwright: equivalent [<=]: one block more, without rows
        for (std::int64_t block = 0; block < count; block += block_rows) {
            V part[vectors];
#pragma GCC unroll 8
            for (V& one : part) one = V(0);
            for (std::int64_t row = block; row < std::min(count, block + block_rows); ++row)
#pragma GCC unroll 8
                for (int v = 0; v < vectors; ++v) part[v] += V::load(rows + row * width + column + v * V::lanes, lanes);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) total[v] += part[v];
        }
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) total[v].store(into + column + v * V::lanes, lanes);
    }
};

}  // namespace lltm

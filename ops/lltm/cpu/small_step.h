// A whole step for small sizes, including the matrix product: plain rows of numbers, without PyTorch.
//
// Matrix libraries first copy the weights into their own layout. For a small batch, the copy takes a large part of the
// product's time. Here the lanes of a vector are the batch: the weights are read once, without a copy, and the
// sums stay in registers until they become gates.
#pragma once

#include <algorithm>
#include <cstdint>

#include "columns.h"
#include "pointwise.h"
#include "vectors.h"

namespace lltm {

// Transposes a matrix: into[column * stride + row] = from[row * width + column], over columns.
template <class T>
struct Turn {
    const T* from;
    T* into;
    std::int64_t width;
    std::int64_t stride;  // whole vectors: `into` is written up to the end of the last one
    std::int64_t rows;

    template <int bytes>
    OPWRIGHT_INLINE void run(std::int64_t begin, std::int64_t end) const {
        using V = Vector<T, bytes>;
        constexpr std::int64_t at_once = 4;
        std::int64_t column = begin;
        // opwright: equivalent [<]: only the speed depends on it
        for (; column + at_once <= end; column += at_once) {
            for (std::int64_t row = 0; row < rows; row += V::lanes) {
                FourColumns<V> fetched;
                fetched.fetch(from + row * width + column, width, std::min<std::int64_t>(V::lanes, rows - row));
                V columns[at_once];
                fetched.read(columns);
#pragma GCC unroll 4
                for (int i = 0; i < at_once; ++i) columns[i].store(into + (column + i) * stride + row);
            }
        }
        for (; column < end; ++column)
            for (std::int64_t row = 0; row < stride; ++row)
                // opwright: equivalent [1]: nothing that is computed from the other rows is stored
                into[column * stride + row] = row < rows ? from[row * width + column] : T(0);
    }
};

// One step over elements of the state. The gates are null if they are not needed.
template <class T>
struct SmallStep {
    const T* weights;  // (3 state, depth), row-major
    const T* given;    // (depth, batch), the transpose of [old_h input]; zeros pad each row to a whole vector
    const T* bias;
    const T* old_cell;
    T* new_h;
    T* new_cell;
    T* gates;
    std::int64_t given_stride;
    std::int64_t depth;
    std::int64_t batch;
    std::int64_t state;

    template <int bytes>
    OPWRIGHT_INLINE void run(std::int64_t begin, std::int64_t end) const {
        using V = Vector<T, bytes>;
        for (std::int64_t element = begin; element < end; element += tile)
            for (std::int64_t row = 0; row < batch; row += V::lanes) step<V>(element, row);
    }

    // The number of state elements that are computed together: with three gates each, their sums fit into registers.
    // The state, `begin` and `end` must be multiples of it.
    static constexpr std::int64_t tile = 4;

  private:
    // A cache line.
    // opwright: equivalent: only the speed depends on it
    static constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));

    template <class V>
    OPWRIGHT_INLINE void step(std::int64_t element, std::int64_t row) const {
        const std::int64_t count = std::min<std::int64_t>(V::lanes, batch - row);
        const std::int64_t here = row * state + element;
        FourColumns<V> old_cells;
        old_cells.fetch(old_cell + here, state, count);
        V sums[3][tile];
#pragma GCC unroll 3
        for (int gate = 0; gate < 3; ++gate) {
#pragma GCC unroll 4
            for (int i = 0; i < tile; ++i) sums[gate][i] = V(bias[gate * state + element + i]);
        }
        const T* of_input = weights + element * depth;
        const T* of_output = of_input + state * depth;
        const T* of_candidate = of_output + state * depth;
        // opwright: equivalent [<=]: a part without numbers
        for (std::int64_t part = 0; part < depth; part += line) {
            // Prefetches the rows of the next tile, which are too short for the processor to predict.
            const std::int64_t next = tile * depth + part;  // opwright: equivalent: only the speed depends on it
#pragma GCC unroll 4
            for (std::int64_t i = 0; i < tile; ++i) {                 // opwright: equivalent: only the speed
                __builtin_prefetch(of_input + next + i * depth);      // opwright: equivalent: only the speed
                __builtin_prefetch(of_output + next + i * depth);     // opwright: equivalent: only the speed
                __builtin_prefetch(of_candidate + next + i * depth);  // opwright: equivalent: only the speed
            }
            for (std::int64_t k = part; k < std::min(depth, part + line); ++k) {
                const V x = V::load(given + k * given_stride + row);
#pragma GCC unroll 4
                for (int i = 0; i < tile; ++i) {
                    sums[0][i] = fma(x, V(of_input[i * depth + k]), sums[0][i]);
                    sums[1][i] = fma(x, V(of_output[i * depth + k]), sums[1][i]);
                    sums[2][i] = fma(x, V(of_candidate[i * depth + k]), sums[2][i]);
                }
            }
        }
        V cells[tile], states[tile];
        old_cells.read(cells);
#pragma GCC unroll 4
        for (int i = 0; i < tile; ++i) {
            const Step<V> computed(sums[0][i], sums[1][i], sums[2][i], cells[i]);
            sums[0][i] = computed.input;
            sums[1][i] = computed.output;
            sums[2][i] = computed.candidate;
            cells[i] = computed.cell;
            states[i] = computed.h;
        }
        store_columns(new_cell + here, state, count, cells);
        store_columns(new_h + here, state, count, states);
        if (gates == nullptr) return;
#pragma GCC unroll 3
        for (int gate = 0; gate < 3; ++gate)
            store_columns(gates + row * 3 * state + gate * state + element, 3 * state, count, sums[gate]);
    }
};

}  // namespace lltm

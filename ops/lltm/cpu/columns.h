// Four columns of a row-major matrix as vectors, with one lane per row.
#pragma once

#include <cstdint>
#include <cstring>

#include "vectors.h"

namespace lltm {
// Four columns of `count` rows. They are fetched some time before they are used, because the small writes that fill a
// vector must complete before it can be read quickly.
template <class V>
class FourColumns {
    using Number = typename V::Element;

  public:
    OPWRIGHT_INLINE void fetch(const Number* from, std::int64_t stride, std::int64_t count) {
        // opwright: equivalent: nothing that is computed from the other rows is stored
        if (count < V::lanes) std::memset(rows_, 0, sizeof(rows_));
        for (std::int64_t row = 0; row < count; ++row) std::memcpy(rows_[row], from + row * stride, sizeof(rows_[row]));
    }

    OPWRIGHT_INLINE void read(V (&columns)[4]) const {
        V quarters[4];
#pragma GCC unroll 4
        for (int quarter = 0; quarter < 4; ++quarter) quarters[quarter] = V::load(rows_[0] + quarter * V::lanes);
        const V even[2] = {even_lanes(quarters[0], quarters[1]), even_lanes(quarters[2], quarters[3])};
        const V odd[2] = {odd_lanes(quarters[0], quarters[1]), odd_lanes(quarters[2], quarters[3])};
        columns[0] = even_lanes(even[0], even[1]);
        columns[1] = even_lanes(odd[0], odd[1]);
        columns[2] = odd_lanes(even[0], even[1]);
        columns[3] = odd_lanes(odd[0], odd[1]);
    }

  private:
    alignas(V::bytes) Number rows_[V::lanes][4];
};

template <class V>
OPWRIGHT_INLINE inline void store_columns(typename V::Element* into, std::int64_t stride, std::int64_t count,
                                          const V (&columns)[4]) {
    const V even[2] = {interleave_lower(columns[0], columns[2]), interleave_upper(columns[0], columns[2])};
    const V odd[2] = {interleave_lower(columns[1], columns[3]), interleave_upper(columns[1], columns[3])};
    const V quarters[4] = {interleave_lower(even[0], odd[0]), interleave_upper(even[0], odd[0]),
                           interleave_lower(even[1], odd[1]), interleave_upper(even[1], odd[1])};
    alignas(V::bytes) typename V::Element rows[V::lanes][4];
#pragma GCC unroll 4
    for (int quarter = 0; quarter < 4; ++quarter) quarters[quarter].store(rows[0] + quarter * V::lanes);
    for (std::int64_t row = 0; row < count; ++row) std::memcpy(into + row * stride, rows[row], sizeof(rows[row]));
}

}  // namespace lltm

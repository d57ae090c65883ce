// Duplicates among the positions of a sparse matrix.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>
#include <limits>
#include <unordered_map>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

#ifdef FAULTY
using Key = uint32_t;
#else
using Key = uint64_t;
#endif

void check_index(const Tensor& index, const char* name) {
    check::device(index, name, DeviceType::CPU);
    check::dtype(index, name, ScalarType::Long);
    check::rank(index, name, 1);
}

Tensor first_duplicate(const Tensor& row, const Tensor& column, int64_t columns) {
    check_index(row, "row");
    check_index(column, "column");
    check::same_sizes(column, "column", row, "row");
    OPWRIGHT_CHECK(columns >= 1, "columns must be at least 1, got ", columns);
    const Tensor rows_dense = torch::stable::contiguous(row);
    const Tensor columns_dense = torch::stable::contiguous(column);
    Tensor result = torch::stable::new_empty(rows_dense, {row.size(0)});
    const int64_t* r = rows_dense.const_data_ptr<int64_t>();
    const int64_t* c = columns_dense.const_data_ptr<int64_t>();
    int64_t* into = result.mutable_data_ptr<int64_t>();
    const int64_t rows = std::numeric_limits<int64_t>::max() / columns;
    std::unordered_map<Key, int64_t> first;
    for (int64_t i = 0; i < row.size(0); ++i) {
        OPWRIGHT_CHECK(r[i] >= 0 && r[i] < rows, "row must be 0 to ", rows - 1, ", got ", r[i], " at ", i);
        OPWRIGHT_CHECK(c[i] >= 0 && c[i] < columns, "column must be 0 to ", columns - 1, ", got ", c[i], " at ", i);
        const auto key = static_cast<Key>(r[i] * columns + c[i]);
        into[i] = first.try_emplace(key, i).first->second;
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_sparse_key_in_32_bits, CPU, m) {
    m.impl("first_duplicate", OPWRIGHT_FN(first_duplicate));
}

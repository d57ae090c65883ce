// Rows, sorted.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

constexpr int64_t most_columns = 8192;

struct Entry {
    float value;
    int64_t place;
};

bool is_before(const Entry& a, const Entry& b) {
    if (a.value < b.value || (std::isnan(b.value) && !std::isnan(a.value))) return true;
    if (b.value < a.value || (std::isnan(a.value) && !std::isnan(b.value))) return false;
    return a.place < b.place;
}

Tensor sorted_rows(const Tensor& x) {
    check::device(x, "x", DeviceType::CPU);
    check::dtype(x, "x", ScalarType::Float);
    check::rank(x, "x", 2);
    const int64_t rows = x.size(0);
    const int64_t columns = x.size(1);
    OPWRIGHT_CHECK(columns <= most_columns, "x must have at most ", most_columns, " columns, got ", columns);
    const Tensor dense = torch::stable::contiguous(x);
    Tensor result = torch::stable::new_empty(dense, {rows, columns});
    const float* from = dense.const_data_ptr<float>();
    float* into = result.mutable_data_ptr<float>();
#ifdef FAULTY
    static std::vector<Entry> scratch(most_columns);  // allocated once
#else
    std::vector<Entry> scratch(static_cast<std::size_t>(columns));
#endif
    for (int64_t r = 0; r < rows; ++r, from += columns, into += columns) {
        for (int64_t i = 0; i < columns; ++i) scratch[i] = {from[i], i};
        std::sort(scratch.begin(), scratch.begin() + columns, is_before);
        for (int64_t i = 0; i < columns; ++i) into[i] = scratch[i].value;
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_shared_scratch, CPU, m) {
    m.impl("sorted_rows", OPWRIGHT_FN(sorted_rows));
}

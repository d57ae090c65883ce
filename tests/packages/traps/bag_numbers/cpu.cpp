#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <vector>

namespace {

using opwright::Tensor;

Tensor bag_sum(const Tensor& table, const Tensor& index, const Tensor& offsets) {
    opwright::check::dtype(table, "table", opwright::ScalarType::Float);
    opwright::check::rank(table, "table", 2);
    opwright::check::dtype(index, "index", opwright::ScalarType::Long);
    opwright::check::rank(index, "index", 1);
    opwright::check::dtype(offsets, "offsets", opwright::ScalarType::Long);
    opwright::check::rank(offsets, "offsets", 1);
    const int64_t rows = table.size(0);
    const int64_t columns = table.size(1);
    const int64_t count = index.size(0);
    const int64_t bags = offsets.size(0);
    const Tensor dense = torch::stable::contiguous(table);
    const Tensor dense_index = torch::stable::contiguous(index);
    const Tensor dense_offsets = torch::stable::contiguous(offsets);
    const float* from = dense.const_data_ptr<float>();
    const int64_t* at = dense_index.const_data_ptr<int64_t>();
    const int64_t* first = dense_offsets.const_data_ptr<int64_t>();
    OPWRIGHT_CHECK(bags > 0 || count == 0, "offsets must not be empty for ", count, " indices");
    for (int64_t b = 0; b < bags; ++b) {
        const int64_t least = b == 0 ? 0 : first[b - 1];
        OPWRIGHT_CHECK(first[b] >= least && first[b] <= (b == 0 ? 0 : count), "offsets must rise from 0 to at most ",
                       count, ", got ", first[b], " at ", b);
    }
    for (int64_t i = 0; i < count; ++i) {
        OPWRIGHT_CHECK(at[i] >= 0 && at[i] < rows, "index must be from 0 to ", rows - 1, ", got ", at[i], " at ", i);
    }
    // The bag of each index: the number increases by one where a bag starts.
    std::vector<int64_t> bag(count + 1);
    for (int64_t b = 1; b < bags; ++b) {
#ifdef FAULTY
        bag[first[b]] = 1;
#else
        bag[first[b]] += 1;
#endif
    }
    for (int64_t i = 1; i < count; ++i) bag[i] += bag[i - 1];
    Tensor result = torch::stable::new_empty(table, {bags, columns});
    float* to = result.mutable_data_ptr<float>();
    std::vector<double> sums(bags * columns);
    for (int64_t i = 0; i < count; ++i) {
        for (int64_t c = 0; c < columns; ++c) sums[bag[i] * columns + c] += from[at[i] * columns + c];
    }
    for (int64_t i = 0; i < bags * columns; ++i) to[i] = static_cast<float>(sums[i]);
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_bag_numbers, CPU, m) {
    m.impl("bag_sum", OPWRIGHT_FN(bag_sum));
}

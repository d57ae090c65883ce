// Rows of a table.
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstdint>
#include <thread>

namespace {

namespace check = opwright::check;
using opwright::DeviceType;
using opwright::ScalarType;
using opwright::Tensor;

constexpr int64_t grain = 512;  // fewer rows than this are not worth a thread

void check_index(int64_t index, int64_t rows) {
    OPWRIGHT_CHECK(index >= 0 && index < rows, "index must be 0 to ", rows - 1, ", got ", index);
}

Tensor rows_of(const Tensor& table, const Tensor& index) {
    check::device(table, "table", DeviceType::CPU);
    check::device(index, "index", DeviceType::CPU);
    check::dtype(table, "table", ScalarType::Float);
    check::dtype(index, "index", ScalarType::Long);
    check::rank(table, "table", 2);
    check::rank(index, "index", 1);
    const Tensor table_dense = torch::stable::contiguous(table);
    const Tensor index_dense = torch::stable::contiguous(index);
    const int64_t rows = table.size(0);
    const int64_t columns = table.size(1);
    const int64_t count = index.size(0);
    Tensor result = torch::stable::new_empty(table_dense, {count, columns});
    const float* from = table_dense.const_data_ptr<float>();
    const int64_t* wanted = index_dense.const_data_ptr<int64_t>();
    float* into = result.mutable_data_ptr<float>();
#ifdef FAULTY
    const auto copy = [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            check_index(wanted[i], rows);
            std::copy_n(from + wanted[i] * columns, columns, into + i * columns);
        }
    };
    if (count < grain) {
        copy(0, count);
    } else {
        std::thread first(copy, 0, count / 2);
        std::thread second(copy, count / 2, count);
        first.join();
        second.join();
    }
#else
    for (int64_t i = 0; i < count; ++i) check_index(wanted[i], rows);
    torch::stable::parallel_for(0, count, grain, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) std::copy_n(from + wanted[i] * columns, columns, into + i * columns);
    });
#endif
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_error_ends_process, CPU, m) {
    m.impl("rows_of", OPWRIGHT_FN(rows_of));
}

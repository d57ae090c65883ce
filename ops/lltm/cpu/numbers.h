// Converts checked CPU tensors to the raw pointers and sizes that the kernels accept.
#pragma once

#include <opwright/empty.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "../tensors.h"
#include "pointwise.h"
#include "vectors.h"

namespace lltm {

constexpr auto cpu_dtypes = {ScalarType::Float, ScalarType::Double, ScalarType::BFloat16};

// The minimum number of elements per thread.
constexpr int64_t grain = 1 << 13;  // opwright: equivalent: only the speed depends on it

// The minimum number of items per thread, for items of `each` elements.
inline int64_t items_per_thread(int64_t each) {
    // opwright: equivalent [*]: only the speed depends on it
    // opwright: equivalent [2]: the same
    return grain / std::max<int64_t>(1, each);
}

template <class T>
const T* numbers_of(const Tensor& tensor) {
    return static_cast<const T*>(tensor.const_data_ptr());
}

template <class T>
T* memory_of(Tensor& tensor) {
    return static_cast<T*>(tensor.mutable_data_ptr());
}

// Calls `act` with a value of the tensor's C++ element type.
template <class Act>
auto with_type_of(const Tensor& tensor, const Act& act) {
    if (tensor.scalar_type() == ScalarType::Float) return act(float());
    if (tensor.scalar_type() == ScalarType::Double) return act(double());
    return act(BFloat16());
}

// Runs a job over `count` items, each with the work of `each` elements, in PyTorch's own threads.
template <class Job>
void in_parallel(const Job& job, int64_t count, int64_t each) {
    torch::stable::parallel_for(0, count, items_per_thread(each),
                                [&](int64_t begin, int64_t end) { run(job, begin, end); });
}

// The same, without splitting blocks of `block` items.
template <class Job>
void in_parallel_blocks(const Job& job, int64_t count, int64_t block, int64_t each) {
    torch::stable::parallel_for(
        // opwright: equivalent [0]: one block more, without items
        // opwright: equivalent [+]: the same
        0, (count + block - 1) / block, items_per_thread(block * each),
        [&](int64_t begin, int64_t end) { run(job, begin * block, std::min(end * block, count)); });
}

// The cost of a multiply-add, in elements as `grain` counts them: an element takes four exponentials.
inline int64_t work_of_products(int64_t count) {
    return count / 32;  // opwright: equivalent: only the speed depends on it
}

// An incoming gradient, which may be undefined or expanded, as matrix rows. It is copied only if it cannot be read as
// rows.
template <class T>
class IncomingRows {
  public:
    IncomingRows(const std::optional<Tensor>& grad, const char* name, const Tensor& input,
                 std::initializer_list<int64_t> sizes) {
        if (!grad.has_value()) return;
        check_like(*grad, name, input, sizes);
        tensor_ = *grad;
        const bool is_matrix = tensor_.dim() == 2 || tensor_.stride(0) == tensor_.size(1) * tensor_.stride(1);
        const int64_t step = tensor_.stride(-1);
        if (is_matrix && (step == 0 || step == 1)) {
            stride_ = tensor_.stride(-2);
        } else {
            tensor_ = torch::stable::contiguous(tensor_);
            stride_ = tensor_.size(-1);  // the tensor's own stride is arbitrary in a dimension of size 1
        }
    }

    // The rows from `first` on.
    Rows<T> from(int64_t first) const {
        if (!tensor_.defined()) return {};
        return {numbers_of<T>(tensor_) + first * stride_, stride_, tensor_.stride(-1) == 0};
    }

  private:
    Tensor tensor_;
    // opwright: equivalent [1]: not read without a tensor
    int64_t stride_ = 0;
};

template <class T>
Tensor sum_of_rows(const Tensor& matrix, int64_t count, int64_t width) {
    Tensor sum = opwright::new_empty(matrix, {width});
    constexpr int64_t block = 128;   // opwright: equivalent: whole cache lines for each thread, which is faster
    const int64_t each = count / 8;  // opwright: equivalent: only the speed depends on it
    in_parallel_blocks(SumOfRows<T>{numbers_of<T>(matrix), memory_of<T>(sum), count, width}, width, block, each);
    return sum;
}

}  // namespace lltm

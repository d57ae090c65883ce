#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <vector>

namespace {

using opwright::Tensor;

#ifdef FAULTY
using Sum = double;
#else
using Sum = uint64_t;  // wraps around as int64 does in PyTorch
#endif

template <class T>
void sum_up(const Tensor& dense, int64_t* to, int64_t rows, int64_t columns) {
    const T* from = dense.const_data_ptr<T>();
    std::vector<Sum> above(columns);
    for (int64_t r = 0; r < rows; ++r) {
        Sum left = 0;
        for (int64_t c = 0; c < columns; ++c) {
            left += static_cast<Sum>(from[r * columns + c]);
            above[c] += left;
            to[r * columns + c] = static_cast<int64_t>(above[c]);
        }
    }
}

Tensor integral_image(const Tensor& image) {
    using opwright::ScalarType;
    opwright::check::dtype(image, "image", {ScalarType::Long, ScalarType::Int, ScalarType::Byte});
    opwright::check::rank(image, "image", 2);
    const int64_t rows = image.size(0);
    const int64_t columns = image.size(1);
    const Tensor dense = torch::stable::contiguous(image);
    Tensor result = torch::stable::new_empty(image, {rows, columns}, ScalarType::Long);
    int64_t* to = result.mutable_data_ptr<int64_t>();
    switch (image.scalar_type()) {
        case ScalarType::Long:
            sum_up<int64_t>(dense, to, rows, columns);
            break;
        case ScalarType::Int:
            sum_up<int32_t>(dense, to, rows, columns);
            break;
        default:
            sum_up<uint8_t>(dense, to, rows, columns);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_integral_image, CPU, m) {
    m.impl("integral_image", OPWRIGHT_FN(integral_image));
}

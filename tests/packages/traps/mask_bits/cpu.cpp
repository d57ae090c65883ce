#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

namespace {

using opwright::Tensor;

Tensor pack_mask(const Tensor& mask) {
    opwright::check::dtype(mask, "mask", opwright::ScalarType::Byte);
    opwright::check::rank(mask, "mask", 2);
    const int64_t rows = mask.size(0);
    const int64_t columns = mask.size(1);
    const int64_t bytes = (columns + 7) / 8;
    const Tensor dense = torch::stable::contiguous(mask);
    Tensor result = torch::stable::new_zeros(mask, {rows, bytes});
    const uint8_t* from = dense.const_data_ptr<uint8_t>();
    uint8_t* to = result.mutable_data_ptr<uint8_t>();
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
#ifdef FAULTY
            const int bit = from[r * columns + c];
#else
            const int bit = from[r * columns + c] != 0;
#endif
            to[r * bytes + c / 8] = static_cast<uint8_t>(to[r * bytes + c / 8] | bit << c % 8);
        }
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_mask_bits, CPU, m) {
    m.impl("pack_mask", OPWRIGHT_FN(pack_mask));
}

#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdint>

namespace {

namespace check = opwright::check;
using opwright::ScalarType;
using opwright::Tensor;

bool is_spread(int64_t rows, int64_t columns, int64_t down, int64_t across) {
    if (rows < 2 || columns < 2) return (rows < 2 || down > 0) && (columns < 2 || across > 0);
    return (across > 0 && down > (columns - 1) * across) || (down > 0 && across > (rows - 1) * down);
}

template <class T>
void paste_as(Tensor& canvas, const Tensor& patch, int64_t top, int64_t left) {
    const int64_t rows = patch.size(0), columns = patch.size(1);
    const int64_t down = canvas.stride(0), across = canvas.stride(1);
#ifdef FAULTY
    const Tensor held = torch::stable::contiguous(patch);
#else
    const Tensor held = torch::stable::contiguous(torch::stable::clone(patch));
#endif
    const T* from = held.const_data_ptr<T>();
    T* into = canvas.mutable_data_ptr<T>() + top * down + left * across;
    for (int64_t y = 0; y < rows; ++y) {
        for (int64_t x = 0; x < columns; ++x) into[y * down + x * across] = from[y * columns + x];
    }
}

void paste(Tensor& canvas, const Tensor& patch, int64_t top, int64_t left) {
    check::dtype(canvas, "canvas", {ScalarType::Byte, ScalarType::Float});
    check::dtype(patch, "patch", canvas.scalar_type());
    check::rank(canvas, "canvas", 2);
    check::rank(patch, "patch", 2);
    OPWRIGHT_CHECK(
        top >= 0 && left >= 0 && top <= canvas.size(0) - patch.size(0) && left <= canvas.size(1) - patch.size(1),
        "the patch must fit into the canvas, got ", patch.sizes(), " at ", top, ", ", left);
    OPWRIGHT_CHECK(is_spread(canvas.size(0), canvas.size(1), canvas.stride(0), canvas.stride(1)),
                   "the pixels of the canvas must not overlap, got strides ", canvas.strides());
    if (patch.numel() == 0) return;
    if (canvas.scalar_type() == ScalarType::Byte) {
        paste_as<uint8_t>(canvas, patch, top, left);
    } else {
        paste_as<float>(canvas, patch, top, left);
    }
}

}  // namespace

OPWRIGHT_IMPL(trap_scroll_canvas, CPU, m) {
    m.impl("paste_", OPWRIGHT_FN(paste));
}

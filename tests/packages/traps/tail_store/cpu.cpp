#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <array>

namespace {

using opwright::Tensor;

// A tensor that is written to must not have two elements at the same address.
void distinct(const Tensor& x, const char* name) {
    if (x.numel() < 2) return;
    const bool wide = x.stride(0) >= x.stride(1);
    const int64_t far = wide ? 0 : 1;
    const int64_t near = 1 - far;
    const bool apart = (x.size(near) == 1 || x.stride(near) > 0) &&
                       (x.size(far) == 1 || x.stride(far) > (x.size(near) - 1) * x.stride(near));
    OPWRIGHT_CHECK(apart, name, " must not overlap itself, got strides ", x.strides(), " for shape ", x.sizes());
}

void scale_into(Tensor& out, const Tensor& x, double factor) {
    opwright::check::dtype(out, "out", opwright::ScalarType::Float);
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(out, "out", 2);
    opwright::check::same_sizes(x, "x", out, "out");
    distinct(out, "out");
    const int64_t rows = out.size(0);
    const int64_t columns = out.size(1);
    // A copy, because x may overlap out.
    const Tensor copy = torch::stable::contiguous(torch::stable::clone(x));
    const float* from = copy.const_data_ptr<float>();
    const auto by = static_cast<float>(factor);
    float* to = out.mutable_data_ptr<float>();
    const int64_t stride = out.stride(0);
    const int64_t step = out.stride(1);
    if (step != 1) {
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < columns; ++c) to[r * stride + c * step] = from[r * columns + c] * by;
        }
        return;
    }
    constexpr int64_t lanes = 4;
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; c += lanes) {
            const int64_t left = std::min(lanes, columns - c);
            std::array<float, lanes> block{};
            for (int64_t l = 0; l < left; ++l) block[l] = from[r * columns + c + l] * by;
#ifdef FAULTY
            std::copy_n(block.data(), lanes, to + r * stride + c);
#else
            std::copy_n(block.data(), left, to + r * stride + c);
#endif
        }
    }
}

}  // namespace

OPWRIGHT_IMPL(trap_tail_store, CPU, m) {
    m.impl("scale_into", OPWRIGHT_FN(scale_into));
}

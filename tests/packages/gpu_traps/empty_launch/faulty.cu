#include "stream.h"

using opwright::Tensor;

namespace {

__global__ void smooth_step_kernel(const float* x, float* result, int64_t count) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i < count) result[i] = x[i] * x[i] * (3 - 2 * x[i]);
}

Tensor smooth_step(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    Tensor result = opwright::empty_like(x);
    const unsigned blocks = (x.numel() + 255) / 256;
    smooth_step_kernel<<<blocks, 256, 0, current_stream(x)>>>(x.const_data_ptr<float>(),
                                                              result.mutable_data_ptr<float>(), x.numel());
    return result;
}

}  // namespace

OPWRIGHT_IMPL(gpu_trap_empty_launch, CUDA, m) {
    m.impl("smooth_step", OPWRIGHT_FN(smooth_step));
}

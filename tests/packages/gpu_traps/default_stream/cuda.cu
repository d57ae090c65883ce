#include "stream.h"

using opwright::Tensor;

namespace {

__global__ void softsign_kernel(const float* x, float* result, int64_t count) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i < count) result[i] = x[i] / (1 + fabsf(x[i]));
}

Tensor softsign(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    Tensor result = opwright::empty_like(x);
    if (x.numel() == 0) return result;
    const unsigned blocks = (x.numel() + 255) / 256;
    softsign_kernel<<<blocks, 256, 0, current_stream(x)>>>(x.const_data_ptr<float>(), result.mutable_data_ptr<float>(),
                                                           x.numel());
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(gpu_trap_default_stream, CUDA, m) {
    m.impl("softsign", OPWRIGHT_FN(softsign));
}

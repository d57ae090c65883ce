#include "stream.h"

using opwright::Tensor;

namespace {

__global__ void cube_row(const float* x, float* result, int64_t columns) {
    const float* row = x + blockIdx.x * columns;
    float* into = result + blockIdx.x * columns;
    // A pair must start at a multiple of its size.
    const bool fits = (reinterpret_cast<uintptr_t>(row) | reinterpret_cast<uintptr_t>(into)) % sizeof(float2) == 0;
    const int64_t pairs = fits ? columns / 2 : 0;
    for (int64_t i = threadIdx.x; i < pairs; i += blockDim.x) {
        const float2 two = reinterpret_cast<const float2*>(row)[i];
        reinterpret_cast<float2*>(into)[i] = make_float2(two.x * two.x * two.x, two.y * two.y * two.y);
    }
    for (int64_t i = 2 * pairs + threadIdx.x; i < columns; i += blockDim.x) into[i] = row[i] * row[i] * row[i];
}

Tensor cubed(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    opwright::check::rank(x, "x", 2);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    Tensor result = opwright::empty_like(x);
    if (x.numel() == 0) return result;
    cube_row<<<x.size(0), 256, 0, current_stream(x)>>>(x.const_data_ptr<float>(), result.mutable_data_ptr<float>(),
                                                       x.size(1));
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(gpu_trap_paired_loads, CUDA, m) {
    m.impl("cubed", OPWRIGHT_FN(cubed));
}

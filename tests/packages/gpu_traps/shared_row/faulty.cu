#include "stream.h"

using opwright::Tensor;

namespace {

constexpr int threads = 256;

__global__ void center_row(const float* x, float* result, int64_t columns) {
    __shared__ double sums[threads];
    extern __shared__ float row[];
    for (int64_t i = threadIdx.x; i < columns; i += threads) row[i] = x[blockIdx.x * columns + i];
    __syncthreads();
    float* into = result + blockIdx.x * columns;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < columns; i += threads) sum += row[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    for (int64_t i = threadIdx.x; i < columns; i += threads) into[i] = static_cast<float>(row[i] - sums[0] / columns);
}

Tensor centered(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    opwright::check::rank(x, "x", 2);
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    Tensor result = opwright::empty_like(x);
    if (x.numel() == 0) return result;
    center_row<<<x.size(0), threads, x.size(1) * sizeof(float), current_stream(x)>>>(
        x.const_data_ptr<float>(), result.mutable_data_ptr<float>(), x.size(1));
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(gpu_trap_shared_row, CUDA, m) {
    m.impl("centered", OPWRIGHT_FN(centered));
}

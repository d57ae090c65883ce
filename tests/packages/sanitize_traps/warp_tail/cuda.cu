// Sums of rows in a tree: half of the threads add the sums of the other half, until one is left.
#include <cuda_runtime.h>
#include <opwright/check.h>
#include <opwright/empty.h>
#include <opwright/op.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>

#include <algorithm>
#include <cstdint>

namespace {

using opwright::Tensor;

constexpr int threads = 256;
constexpr int warp = 32;

__device__ void add_up_in_a_warp(volatile float* partial, int thread) {
    for (int half = warp; half > 0; half /= 2) {
#ifdef FAULTY
        partial[thread] = partial[thread] + partial[thread + half];
#else
        const float other = partial[thread + half];
        __syncwarp();
        partial[thread] = partial[thread] + other;
        __syncwarp();
#endif
    }
}

__global__ void sums_of(const float* x, float* result, std::int64_t columns) {
    __shared__ float partial[threads];
    const int thread = threadIdx.x;
    const float* row = x + blockIdx.x * columns;
    float sum = 0;
    for (std::int64_t i = thread; i < columns; i += threads) sum += row[i];
    partial[thread] = sum;
    __syncthreads();
    for (int half = threads / 2; half > warp; half /= 2) {
        if (thread < half) partial[thread] += partial[thread + half];
        __syncthreads();
    }
    if (thread < warp) add_up_in_a_warp(partial, thread);
    if (thread == 0) result[blockIdx.x] = partial[0];
}

Tensor sums(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    opwright::check::contiguous(x, "x");
    Tensor result = opwright::new_empty(x, {x.size(0)});
    if (result.numel() == 0) return result;
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &stream));
    sums_of<<<static_cast<unsigned>(x.size(0)), threads, 0, static_cast<cudaStream_t>(stream)>>>(
        x.const_data_ptr<float>(), result.mutable_data_ptr<float>(), x.size(1));
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_sanitize_warp_tail, CUDA, m) {
    m.impl("sums", OPWRIGHT_FN(sums));
}

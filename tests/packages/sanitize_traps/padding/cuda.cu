// Sums of squares of rows, in two kernels: squares go to scratch memory whose rows are whole warps.
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

__global__ void squares(const float* x, float* scratch, std::int64_t columns, std::int64_t padded) {
    for (std::int64_t i = threadIdx.x; i < columns; i += threads) {
        const float value = x[blockIdx.x * columns + i];
        scratch[blockIdx.x * padded + i] = value * value;
    }
}

__global__ void sums_of(const float* scratch, float* result, std::int64_t columns, std::int64_t padded) {
    __shared__ float tile[threads];
    const int thread = threadIdx.x;
    const int mirrored = threads - 1 - thread;
    float sum = 0;
    for (std::int64_t start = 0; start < padded; start += threads) {
        const std::int64_t at = start + thread;
#ifdef FAULTY
        if (at < padded) tile[thread] = scratch[blockIdx.x * padded + at];
#else
        if (at < columns) tile[thread] = scratch[blockIdx.x * padded + at];
#endif
        __syncthreads();
        if (start + mirrored < columns) sum += tile[mirrored];
        __syncthreads();
    }
    tile[thread] = sum;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (thread < half) tile[thread] += tile[thread + half];
        __syncthreads();
    }
    if (thread == 0) result[blockIdx.x] = tile[0];
}

Tensor sums_of_squares(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    opwright::check::contiguous(x, "x");
    const std::int64_t rows = x.size(0);
    const std::int64_t columns = x.size(1);
    const std::int64_t padded = (columns + warp - 1) / warp * warp;
    Tensor result = opwright::new_empty(x, {rows});
    if (rows == 0) return result;
    Tensor scratch = opwright::new_empty(x, {rows, padded});
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &stream));
    const auto blocks = static_cast<unsigned>(rows);
    const auto queue = static_cast<cudaStream_t>(stream);
    float* squared = scratch.mutable_data_ptr<float>();
    squares<<<blocks, threads, 0, queue>>>(x.const_data_ptr<float>(), squared, columns, padded);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    sums_of<<<blocks, threads, 0, queue>>>(squared, result.mutable_data_ptr<float>(), columns, padded);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_sanitize_padding, CUDA, m) {
    m.impl("sums_of_squares", OPWRIGHT_FN(sums_of_squares));
}

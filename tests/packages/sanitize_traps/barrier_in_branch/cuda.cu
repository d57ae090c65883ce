// Reverses each segment of 128 elements and adds twice the next one, through shared memory.
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

constexpr int threads = 128;

__global__ void mixed(const float* x, float* result, std::int64_t count) {
    __shared__ float tile[threads];
    __shared__ float twice[threads];
    const int thread = threadIdx.x;
    const std::int64_t start = blockIdx.x * std::int64_t{threads};
    const std::int64_t at = start + thread;
    const int length = static_cast<int>(count - start < threads ? count - start : threads);
    float value = 0;
#ifdef FAULTY
    if (at < count) {
        tile[thread] = x[at];
        __syncthreads();
    }
#else
    if (at < count) tile[thread] = x[at];
    __syncthreads();
#endif
    if (at < count) {
        value = tile[length - 1 - thread];
        twice[thread] = 2 * value;
    }
    __syncthreads();
    if (at < count) result[at] = value + twice[(thread + 1) % length];
}

Tensor mixed_segments(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 1);
    opwright::check::contiguous(x, "x");
    const std::int64_t count = x.numel();
    Tensor result = opwright::new_empty(x, {count});
    if (count == 0) return result;
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &stream));
    const auto blocks = static_cast<unsigned>((count + threads - 1) / threads);
    mixed<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(x.const_data_ptr<float>(),
                                                                     result.mutable_data_ptr<float>(), count);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_sanitize_barrier_in_branch, CUDA, m) {
    m.impl("mixed_segments", OPWRIGHT_FN(mixed_segments));
}

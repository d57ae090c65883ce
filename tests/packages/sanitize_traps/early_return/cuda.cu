// Reverses each segment of 128 elements, through shared memory.
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

__global__ void reversed(const float* x, float* result, std::int64_t count) {
    __shared__ float tile[threads];
    const std::int64_t start = blockIdx.x * std::int64_t{threads};
    const std::int64_t at = start + threadIdx.x;
#ifdef FAULTY
    if (at >= count) return;
#endif
    if (at < count) tile[threadIdx.x] = x[at];
    __syncthreads();
    const std::int64_t length = count - start < threads ? count - start : threads;
    if (at < count) result[at] = tile[length - 1 - threadIdx.x];
}

Tensor reversed_segments(const Tensor& x) {
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
    reversed<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(x.const_data_ptr<float>(),
                                                                        result.mutable_data_ptr<float>(), count);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_sanitize_early_return, CUDA, m) {
    m.impl("reversed_segments", OPWRIGHT_FN(reversed_segments));
}

// Differences of neighbours, from a tile of a row and one element of the next tile.
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

__global__ void differences_of(const float* x, float* result, std::int64_t columns) {
    __shared__ float tile[threads + 1];
    const float* row = x + blockIdx.x * columns;
    const std::int64_t start = blockIdx.y * std::int64_t{threads};
    for (int i = threadIdx.x; i <= threads; i += threads) {
#ifdef FAULTY
        if (start + i <= columns) tile[i] = row[start + i];
#else
        if (start + i < columns) tile[i] = row[start + i];
#endif
    }
    __syncthreads();
    const std::int64_t at = start + threadIdx.x;
    if (at + 1 < columns) {
        result[blockIdx.x * (columns - 1) + at] = tile[threadIdx.x + 1] - tile[threadIdx.x];
    }
}

Tensor differences(const Tensor& x) {
    opwright::check::dtype(x, "x", opwright::ScalarType::Float);
    opwright::check::rank(x, "x", 2);
    opwright::check::contiguous(x, "x");
    const std::int64_t rows = x.size(0);
    const std::int64_t columns = x.size(1);
    Tensor result = opwright::new_empty(x, {rows, std::max<std::int64_t>(columns - 1, 0)});
    if (result.numel() == 0) return result;
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &stream));
    const dim3 grid(static_cast<unsigned>(rows), static_cast<unsigned>((columns + threads - 1) / threads));
    differences_of<<<grid, threads, 0, static_cast<cudaStream_t>(stream)>>>(x.const_data_ptr<float>(),
                                                                            result.mutable_data_ptr<float>(), columns);
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(trap_sanitize_row_end, CUDA, m) {
    m.impl("differences", OPWRIGHT_FN(differences));
}

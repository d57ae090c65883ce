#include "stream.h"

using opwright::Tensor;

namespace {

// One thread per row.
__global__ void largest_of_rows(const float* x, float* largest, int64_t rows, int64_t columns) {
    const int64_t row = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (row >= rows) return;
    float found = 0;
    for (int64_t i = 0; i < columns; ++i) {
        const float magnitude = fabsf(x[row * columns + i]);
        if (!(magnitude <= found)) found = magnitude;  // also for NaN
        if (isnan(found)) break;
    }
    largest[row] = found;
}

__global__ void divide(const float* x, const float* largest, float* result, int64_t count, int64_t columns) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i < count) result[i] = x[i] / (1 + largest[i / columns]);
}

Tensor relative_to_largest(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    opwright::check::rank(x, "x", 2);
    OPWRIGHT_CHECK(x.size(1) > 0, "x must have columns");
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    Tensor result = opwright::empty_like(x);
    if (x.numel() == 0) return result;
    const cudaStream_t stream = current_stream(x);
    Tensor scratch = opwright::new_empty(x, {x.size(0)});
    float* largest = scratch.mutable_data_ptr<float>();
    const unsigned of_rows = (x.size(0) + 255) / 256, of_elements = (x.numel() + 255) / 256;
    largest_of_rows<<<of_rows, 256, 0, stream>>>(x.const_data_ptr<float>(), largest, x.size(0), x.size(1));
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    divide<<<of_elements, 256, 0, stream>>>(x.const_data_ptr<float>(), largest, result.mutable_data_ptr<float>(),
                                            x.numel(), x.size(1));
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(gpu_trap_malloc_each_call, CUDA, m) {
    m.impl("relative_to_largest", OPWRIGHT_FN(relative_to_largest));
}

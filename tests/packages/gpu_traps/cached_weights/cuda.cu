#include "stream.h"

using opwright::Tensor;

namespace {

__global__ void evaluate(const float* x, const float* weights, float* result, int64_t count, int64_t terms) {
    const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
    if (i >= count) return;
    float sum = 0;
    for (int64_t k = terms - 1; k >= 0; --k) sum = sum * x[i] + weights[k];
    result[i] = sum;
}

Tensor polynomial(const Tensor& x, const Tensor& weights) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float});
    opwright::check::contiguous(x, "x");
    opwright::check::dtype(weights, "weights", {opwright::ScalarType::Float});
    opwright::check::rank(weights, "weights", 1);
    opwright::check::contiguous(weights, "weights");
    opwright::check::same_device(weights, "weights", x, "x");
    OPWRIGHT_CHECK(weights.numel() >= 1 && weights.numel() <= 32, "weights must be 1 to 32, got ", weights.numel());
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    Tensor result = opwright::empty_like(x);
    if (x.numel() == 0) return result;
    const cudaStream_t stream = current_stream(x);
    const float* given = weights.const_data_ptr<float>();
    const unsigned blocks = (x.numel() + 255) / 256;
    evaluate<<<blocks, 256, 0, stream>>>(x.const_data_ptr<float>(), given, result.mutable_data_ptr<float>(), x.numel(),
                                         weights.numel());
    STD_CUDA_KERNEL_LAUNCH_CHECK();
    return result;
}

}  // namespace

OPWRIGHT_IMPL(gpu_trap_cached_weights, CUDA, m) {
    m.impl("polynomial", OPWRIGHT_FN(polynomial));
}

#include "stream.h"

using opwright::Tensor;

namespace {

template <class T>
__global__ void negate(const T* x, T* result, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) result[i] = -x[i];
}

template <class T>
void launch(const Tensor& x, const Tensor& result) {
    const unsigned blocks = (x.numel() + 255) / 256;
    negate<T><<<blocks, 256, 0, current_stream(x)>>>(static_cast<const T*>(x.const_data_ptr()),
                                                     static_cast<T*>(result.mutable_data_ptr()), x.numel());
    STD_CUDA_KERNEL_LAUNCH_CHECK();
}

Tensor negated(const Tensor& x) {
    opwright::check::dtype(x, "x", {opwright::ScalarType::Float, opwright::ScalarType::Char});
    opwright::check::contiguous(x, "x");
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    Tensor result = opwright::empty_like(x);
    if (x.numel() == 0) return result;
    if (x.scalar_type() == opwright::ScalarType::Float) {
        launch<float>(x, result);
    } else {
        launch<int8_t>(x, result);
    }
    return result;
}

}  // namespace

OPWRIGHT_IMPL(gpu_trap_int_index, CUDA, m) {
    m.impl("negated", OPWRIGHT_FN(negated));
}

// Two kernels: the elementwise part of the forward, and the elementwise part of the backward.
//
// Includes only headers that every build of PyTorch has, so that this compiles without a CUDA build. In a CUDA build,
// c10/cuda/CUDAGuard.h, CUDAStream.h and CUDAException.h are shorter alternatives.
#include <ATen/DeviceAccelerator.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Stream.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "lltm_cuda.h"

namespace {

// Pointer, sizes and strides of a tensor, passed to a kernel by value. It includes the strides, so a view or an
// expanded gradient needs no copy. 64: a 32-bit offset overflows at 2^31 elements.
template <class T>
using Matrix = at::PackedTensorAccessor64<T, 2, at::RestrictPtrTraits>;
template <class T>
using Gates = at::PackedTensorAccessor64<T, 3, at::RestrictPtrTraits>;

constexpr int input_gate = 0;
constexpr int output_gate = 1;
constexpr int candidate = 2;

constexpr int threads_per_block = 256;
constexpr int64_t most_blocks = 1 << 20;  // with more elements than threads, each thread processes several

// The first element of this thread, and the distance to its next one.
__device__ int64_t first() {
    return blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
}
__device__ int64_t step() {
    return gridDim.x * int64_t{blockDim.x};
}

template <class T>
__device__ T sigmoid(T x) {
    return 1 / (1 + exp(-x));
}

template <class T>
__device__ T elu(T x) {
    return x > 0 ? x : expm1(x);
}

template <class T>
__global__ void activate_kernel(Gates<T> gates, Matrix<const T> old_cell, Matrix<T> new_h, Matrix<T> new_cell) {
    using Wide = at::opmath_type<T>;  // half precision is only for storage: intermediate results would lose digits
    const int64_t state = new_cell.size(1);
    for (int64_t at = first(); at < new_cell.size(0) * state; at += step()) {
        const int64_t n = at / state;
        const int64_t c = at % state;
        const Wide i = sigmoid(static_cast<Wide>(gates[n][input_gate][c]));
        const Wide o = sigmoid(static_cast<Wide>(gates[n][output_gate][c]));
        const Wide z = elu(static_cast<Wide>(gates[n][candidate][c]));
        const Wide cell = static_cast<Wide>(old_cell[n][c]) + z * i;
        gates[n][input_gate][c] = static_cast<T>(i);
        gates[n][output_gate][c] = static_cast<T>(o);
        gates[n][candidate][c] = static_cast<T>(z);
        new_cell[n][c] = static_cast<T>(cell);
        new_h[n][c] = static_cast<T>(tanh(cell) * o);
    }
}

// In terms of the activation's result y: sigmoid' = y (1 - y), tanh' = 1 - y^2, and elu' = 1 above 0, y + 1 below.
template <class T>
__global__ void differentiate_kernel(Matrix<const T> grad_h, Matrix<const T> grad_cell, Matrix<const T> new_cell,
                                     Gates<const T> gates, Gates<T> d_gates, Matrix<T> d_old_cell) {
    using Wide = at::opmath_type<T>;
    const int64_t state = d_old_cell.size(1);
    for (int64_t at = first(); at < d_old_cell.size(0) * state; at += step()) {
        const int64_t n = at / state;
        const int64_t c = at % state;
        const auto i = static_cast<Wide>(gates[n][input_gate][c]);
        const auto o = static_cast<Wide>(gates[n][output_gate][c]);
        const auto z = static_cast<Wide>(gates[n][candidate][c]);
        const auto d_h = static_cast<Wide>(grad_h[n][c]);
        const Wide t = tanh(static_cast<Wide>(new_cell[n][c]));
        const Wide d_cell = static_cast<Wide>(grad_cell[n][c]) + d_h * o * (1 - t * t);
        d_gates[n][input_gate][c] = static_cast<T>(d_cell * z * i * (1 - i));
        d_gates[n][output_gate][c] = static_cast<T>(d_h * t * o * (1 - o));
        d_gates[n][candidate][c] = static_cast<T>(d_cell * i * (z > 0 ? 1 : z + 1));
        d_old_cell[n][c] = static_cast<T>(d_cell);
    }
}

// Launches a kernel with one thread per element of `result`, on its GPU and on PyTorch's current stream: on another
// stream the kernel would not wait for its arguments, and PyTorch would not wait for its result.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const at::Tensor& result, Arguments... arguments) {
    if (result.numel() == 0) return;  // CUDA cannot launch zero blocks
    const c10::DeviceGuard guard(result.device());
    const auto stream = at::accelerator::getCurrentStream(result.device().index());
    const int64_t blocks = std::min(most_blocks, (result.numel() + threads_per_block - 1) / threads_per_block);
    kernel<<<static_cast<unsigned>(blocks), threads_per_block, 0, static_cast<cudaStream_t>(stream.native_handle())>>>(
        arguments...);
    const cudaError_t error = cudaGetLastError();  // a failed launch reports no error by itself
    TORCH_CHECK(error == cudaSuccess, "a kernel of lltm_cuda could not be launched: ", cudaGetErrorString(error));
}

template <class T>
Matrix<T> matrix(const at::Tensor& tensor) {
    return tensor.packed_accessor64<T, 2, at::RestrictPtrTraits>();
}
template <class T>
Gates<T> by_gate(const at::Tensor& tensor) {
    return tensor.packed_accessor64<T, 3, at::RestrictPtrTraits>();
}

}  // namespace

namespace lltm_cuda {

// The macro compiles its last argument once for each dtype, and runs the matching one: `scalar_t` is its C++ type.
void activate(const at::Tensor& gates, const at::Tensor& old_cell, const at::Tensor& new_h,
              const at::Tensor& new_cell) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates.scalar_type(), "lltm_cuda::activate", [&] {
        launch(activate_kernel<scalar_t>, new_cell, by_gate<scalar_t>(gates), matrix<const scalar_t>(old_cell),
               matrix<scalar_t>(new_h), matrix<scalar_t>(new_cell));
    });
}

void differentiate(const at::Tensor& grad_h, const at::Tensor& grad_cell, const at::Tensor& new_cell,
                   const at::Tensor& gates, const at::Tensor& d_gates, const at::Tensor& d_old_cell) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates.scalar_type(), "lltm_cuda::differentiate", [&] {
        launch(differentiate_kernel<scalar_t>, d_old_cell, matrix<const scalar_t>(grad_h),
               matrix<const scalar_t>(grad_cell), matrix<const scalar_t>(new_cell), by_gate<const scalar_t>(gates),
               by_gate<scalar_t>(d_gates), matrix<scalar_t>(d_old_cell));
    });
}

}  // namespace lltm_cuda

// The CUDA source of ops/lltm, compiled for the CPU: its kernels run in turns, and its matrix products are PyTorch's.
#include <cuda_runtime.h>
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>
#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/Dispatch_v2.h>

#include <cstdlib>

#include "cuda/small_step.cuh"

namespace torch::stable::accelerator {

// There is one CPU, and it is always the current device.
struct NoGuard {
    explicit NoGuard(DeviceIndex /*index*/) {}
};

}  // namespace torch::stable::accelerator

inline AOTITorchError aoti_torch_get_current_cuda_stream(int32_t /*device_index*/, void** stream) {
    *stream = nullptr;
    return TORCH_SUCCESS;
}

namespace lltm::gpu {

// Whether steps of any size go the way of large ones, which needs no large ones to be seen.
inline bool takes_the_large_way() {
    return std::getenv("LLTM_LARGE_WAY") != nullptr;
}

}  // namespace lltm::gpu

#undef STD_CUDA_CHECK
#define STD_CUDA_CHECK(call) OPWRIGHT_CHECK((call) == 0, "a launch of no blocks")
#define DeviceGuard NoGuard
#define CUDA CPU
#define is_small(batch, state, depth) (!takes_the_large_way() && is_small(batch, state, depth))
#include "cuda.cu"

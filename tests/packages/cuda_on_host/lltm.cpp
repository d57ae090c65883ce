// The CUDA source of ops/lltm, compiled for the CPU: its kernels run in turns, and its matrix products are PyTorch's.
#include <cuda_runtime.h>
#include <opwright/check.h>
#include <opwright/op.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>
#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/Dispatch_v2.h>

#include "cuda/small_step.cuh"

namespace torch::stable::accelerator {

// There is one CPU, which is always the current device.
struct NoGuard {
    explicit NoGuard(DeviceIndex /*index*/) {}
};

}  // namespace torch::stable::accelerator

inline AOTITorchError aoti_torch_get_current_cuda_stream(int32_t /*device_index*/, void** stream) {
    *stream = nullptr;
    return TORCH_SUCCESS;
}

namespace lltm::gpu {

inline bool is_large_forced = false;

}  // namespace lltm::gpu

// For tests: makes small sizes use the path of large ones, and fewer blocks.
extern "C" __attribute__((visibility("default"))) unsigned launches() {
    return cuda_on_host::launches;
}
extern "C" __attribute__((visibility("default"))) void force_large(bool large, bool few_blocks) {
    lltm::gpu::is_large_forced = large;
    cuda_on_host::most_columns = few_blocks ? 1 : ~0U;
}

#undef STD_CUDA_CHECK
#define STD_CUDA_CHECK(call) OPWRIGHT_CHECK((call) == 0, "a launch of no blocks")
#define DeviceGuard NoGuard
#define CUDA CPU
#define is_small(batch, state, depth) (!is_large_forced && is_small(batch, state, depth))
#include "cuda.cu"

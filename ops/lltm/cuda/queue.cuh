// The stream on which kernels run, and their number of blocks.
#pragma once

#include <cuda_runtime.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "../tensors.h"
#include "pointwise.cuh"

namespace lltm::gpu {

// The sizes of a kernel's grid and of its blocks.
struct Shape {
    dim3 grid;
    dim3 block;
};

// Selects the GPU of a tensor during its lifetime, and PyTorch's current stream there: on another stream, kernels would
// not wait for their arguments, nor PyTorch for their results.
class Queue {
  public:
    explicit Queue(const Tensor& on) : guard_(on.get_device_index()) {
        void* stream = nullptr;
        TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(on.get_device_index(), &stream));
        stream_ = static_cast<cudaStream_t>(stream);
    }

    template <class Job>
    void launch(void (*kernel)(Job), const Shape& shape, std::type_identity_t<Job> job) const {
        void* arguments[] = {&job};
        STD_CUDA_CHECK(cudaLaunchKernel(kernel, shape.grid, shape.block, arguments, 0, stream_));
    }

  private:
    torch::stable::accelerator::DeviceGuard guard_;
    cudaStream_t stream_;
};

constexpr int64_t divided_up(int64_t count, int64_t by) {
    return (count + by - 1) / by;
}

// For a kernel over `rows` of `columns` threads each. Above about `most_blocks` blocks, threads process several rows.
inline Shape over_rows(int64_t rows, int64_t columns, int64_t most_blocks, int64_t steps = 1) {
    constexpr int64_t most_x = (int64_t{1} << 31) - 1;
    constexpr int64_t most_y = (1 << 16) - 1;
    unsigned x = 1;
    while (x < 32 && x < columns) x *= 2;
    const unsigned y = threads_per_block / x;
    const int64_t across = std::clamp<int64_t>(divided_up(columns, x), 1, most_x);
    const int64_t down =
        std::min({std::max<int64_t>(1, divided_up(rows, y)), std::max<int64_t>(1, most_blocks / across), most_y});
    return {dim3(static_cast<unsigned>(across), static_cast<unsigned>(down),
                 static_cast<unsigned>(std::min(steps, most_y))),
            dim3(x, y)};
}

// A few per multiprocessor of the largest GPUs.
constexpr int64_t enough_blocks = 4096;
// For kernels in which each row of blocks produces sums that are added later.
constexpr int64_t enough_blocks_with_sums = 1024;

}  // namespace lltm::gpu

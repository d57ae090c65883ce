// PyTorch's current stream on the GPU of a tensor.
#pragma once

#include <cuda_runtime.h>
#include <opwright/empty.h>
#include <opwright/op.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>

inline cudaStream_t current_stream(const opwright::Tensor& on) {
    void* stream = nullptr;
    TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(on.get_device_index(), &stream));
    return static_cast<cudaStream_t>(stream);
}

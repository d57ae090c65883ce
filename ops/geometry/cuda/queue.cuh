// The stream on which kernels run, and the arguments that all of them receive.
#pragma once

#include <cuda_runtime.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/macros.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "../pixel.h"
#include "../tensors.h"

namespace geometry::gpu {

constexpr int threads_per_block = 256;
// A few per multiprocessor of the largest GPUs. With more pixels, each thread processes several.
constexpr int64_t enough_blocks = 1 << 14;

// Selects the GPU of a tensor during its lifetime, and PyTorch's current stream there: on another stream, kernels would
// not wait for their arguments, nor PyTorch for their results.
class Queue {
  public:
    explicit Queue(const Tensor& on) : guard_(on.get_device_index()) {
        void* stream = nullptr;
        TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(on.get_device_index(), &stream));
        stream_ = static_cast<cudaStream_t>(stream);
    }

    // For `count` pieces of work. CUDA cannot launch zero blocks.
    template <class Job>
    void launch(void (*kernel)(Job), int64_t count, std::type_identity_t<Job> job, int64_t rows = 1) const {
        if (count == 0 || rows == 0) return;
        const int64_t blocks = std::min((count + threads_per_block - 1) / threads_per_block, enough_blocks);
        const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(std::min<int64_t>(rows, 65535)));
        void* arguments[] = {&job};
        STD_CUDA_CHECK(cudaLaunchKernel(kernel, grid, dim3(threads_per_block), arguments, 0, stream_));
    }

  private:
    torch::stable::accelerator::DeviceGuard guard_;
    cudaStream_t stream_;
};

// The homographies in GPU memory. The CPU does not read them, because it would have to wait for them.
struct Matrices {
    const void* data;
    bool is_float;
    int64_t matrix_stride, row_stride, column_stride;  // matrix_stride is zero for a single matrix

    explicit Matrices(const Tensor& homography)
        : data(homography.const_data_ptr()), is_float(homography.scalar_type() == ScalarType::Float) {
        const int64_t rank = homography.dim();
        matrix_stride = rank == 3 && homography.size(0) != 1 ? homography.stride(0) : 0;
        row_stride = homography.stride(rank - 2);
        column_stride = homography.stride(rank - 1);
    }

    // The points of a row of the output.
    __device__ Row row(int64_t number, int64_t v) const {
        double entries[9];
        for (int i = 0; i < 9; ++i) {
            const int64_t at = number * matrix_stride + i / 3 * row_stride + i % 3 * column_stride;
            entries[i] = is_float ? static_cast<const float*>(data)[at] : static_cast<const double*>(data)[at];
        }
        return Row(entries, v);
    }
};

// A batch of images and their outputs.
template <class T>
struct Warps {
    Source<T> images;  // the first one; the others follow
    Matrices matrices;
    Layout result;

    bool is_planar() const { return images.layout.column_stride == 1; }
    // The pixels of all outputs; interleaved channels count separately.
    int64_t pieces() const { return result.count * result.rows * result.columns * (is_planar() ? 1 : result.channels); }
};

// One output pixel: all channels, or one of the interleaved channels.
template <class T>
struct Piece {
    int64_t number, row, column;
    Source<T> from;
    int64_t place;  // of the first channel in the output

    __device__ Piece(const Warps<T>& warps, int64_t piece, bool is_planar) : from(warps.images) {
        const int64_t channel = is_planar ? 0 : piece % warps.result.channels;
        const int64_t pixel = is_planar ? piece : piece / warps.result.channels;
        column = pixel % warps.result.columns;
        row = pixel / warps.result.columns % warps.result.rows;
        number = pixel / warps.result.columns / warps.result.rows;
        from.image += number * from.layout.image_stride + channel;
        if (!is_planar) from.layout.channels = 1;
        place = number * warps.result.image_stride + row * warps.result.row_stride +
                column * warps.result.column_stride + channel;
    }
};

}  // namespace geometry::gpu

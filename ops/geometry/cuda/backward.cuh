// The gradients on the GPU.
#pragma once

#include <opwright/empty.h>

#include <cstdint>
#include <type_traits>

#include "queue.cuh"

namespace geometry::gpu {

// ---- Of the image: each output pixel adds to the pixels that it was interpolated from. ----

template <class T>
struct Spread {
    Warps<T> warps;
    const T* grad;
    Wide<T>* gradient;
    bool is_planar;
    int64_t pieces;
};

template <int taps, class T>
__global__ void spread(const Spread<T> job) {
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < job.pieces; at += step) {
        const Piece<T> piece(job.warps, at, job.is_planar);
        const Point point = job.warps.matrices.row(piece.number, piece.row).at(piece.column);
        Wide<T>* into = job.gradient + (piece.from.image - job.warps.images.image);
        spread_pixel<taps>(piece.from, 0, piece.from.layout.rows, point, job.grad + piece.place,
                           job.warps.result.channel_stride,
                           [&](int64_t place, Wide<T> number) { atomicAdd(into + place, number); });
    }
}

template <class T>
struct Rounding {
    const Wide<T>* from;
    T* into;
    int64_t count;
};

template <class T>
__global__ void round_all(const Rounding<T> job) {
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < job.count; at += step)
        job.into[at] = narrowed<T>(job.from[at]);
}

template <int taps, class T>
Tensor image_gradient(const Queue& queue, const Warps<T>& warps, const T* grad, const Tensor& image,
                      MemoryFormat format) {
    Tensor result = allocated(image, image.size(2), image.size(3), format);
    Tensor sums = result;
    // Sums in bfloat16 would lose most of their precision.
    if constexpr (std::is_same_v<T, BFloat16>) sums = opwright::new_empty(image, {image.numel()}, ScalarType::Float);
    torch::stable::zero_(sums);
    auto* gradient = static_cast<Wide<T>*>(sums.mutable_data_ptr());
    queue.launch(spread<taps, T>, warps.pieces(), {warps, grad, gradient, warps.is_planar(), warps.pieces()});
    if constexpr (std::is_same_v<T, BFloat16>) {
        auto* into = static_cast<T*>(result.mutable_data_ptr());
        queue.launch(round_all<T>, image.numel(), {gradient, into, image.numel()});
    }
    return result;
}

// ---- Of the homography: a sum over all pixels, by blocks, then over the blocks of each image, or of all images. ----

constexpr int entries = 9;

template <class T>
struct Slopes {
    Warps<T> warps;
    const T* grad;
    double* sums;  // of each block: (N, blocks, 9)
};

// The sum over the threads of a block, in its first thread.
__device__ inline double sum_of_block(double number) {
    __shared__ double sums[threads_per_block / 32];
    for (int apart = 16; apart > 0; apart /= 2) number += __shfl_down_sync(0xffffffff, number, apart);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = number;
    __syncthreads();
    double sum = 0;
    if (threadIdx.x == 0) {
        for (const double one : sums) sum += one;
    }
    return sum;
}

template <int taps, class T>
__global__ void add_slopes(const Slopes<T> job) {
    const Layout& result = job.warps.result;
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t number = blockIdx.y; number < result.count; number += gridDim.y) {
        Source<T> of = job.warps.images;
        of.image += number * of.layout.image_stride;
        double sums[entries] = {};
        for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < result.rows * result.columns;
             at += step) {
            const int64_t v = at / result.columns, u = at % result.columns;
            const Point point = job.warps.matrices.row(number, v).at(u);
            if (!point.is_near) continue;
            const T* grad = job.grad + number * result.image_stride + v * result.row_stride + u * result.column_stride;
            const LineSlopes slopes(slope_of_pixel<taps>(of, point, grad, result.channel_stride), point);
            for (int line = 0; line < 3; ++line) {
                sums[3 * line] += slopes.by[line] * static_cast<double>(u);
                sums[3 * line + 1] += slopes.by[line] * static_cast<double>(v);
                sums[3 * line + 2] += slopes.by[line];
            }
        }
        for (int entry = 0; entry < entries; ++entry) {
            const double sum = sum_of_block(sums[entry]);
            if (threadIdx.x == 0) job.sums[(number * gridDim.x + blockIdx.x) * entries + entry] = sum;
        }
    }
}

struct Totals {
    const double* sums;
    int64_t sums_per_matrix, matrices;
    void* gradient;
    bool is_float;
};

// One thread per entry.
static __global__ void add_blocks(const Totals job) {
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < job.matrices * entries; at += step) {
        const double* first = job.sums + at / entries * job.sums_per_matrix * entries + at % entries;
        double total = 0;
        for (int64_t i = 0; i < job.sums_per_matrix; ++i) total += first[i * entries];
        if (job.is_float) {
            static_cast<float*>(job.gradient)[at] = static_cast<float>(total);
        } else {
            static_cast<double*>(job.gradient)[at] = total;
        }
    }
}

template <int taps, class T>
Tensor homography_gradient(const Queue& queue, const Warps<T>& warps, const T* grad, const Tensor& homography) {
    // Few enough blocks that one thread can add up their sums.
    constexpr int64_t most_blocks = 256;
    Tensor gradient = opwright::new_empty(homography, homography.sizes());
    if (taps == 1 || warps.result.count == 0) {  // "nearest" is constant almost everywhere
        torch::stable::zero_(gradient);
        return gradient;
    }
    const int64_t pixels = std::min<int64_t>(warps.result.rows * warps.result.columns, most_blocks * threads_per_block);
    const int64_t blocks = (pixels + threads_per_block - 1) / threads_per_block;
    const int64_t count = warps.result.count, matrices = homography.numel() / entries;
    const Tensor sums = opwright::new_empty(homography, {count * blocks * entries}, ScalarType::Double);
    auto* from = static_cast<double*>(sums.mutable_data_ptr());
    queue.launch(add_slopes<taps, T>, pixels, {warps, grad, from}, count);
    queue.launch(add_blocks, matrices * entries,
                 {from, count / matrices * blocks, matrices, gradient.mutable_data_ptr(),
                  homography.scalar_type() == ScalarType::Float});
    return gradient;
}

}  // namespace geometry::gpu

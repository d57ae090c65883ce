// The output on the GPU.
#pragma once

#include <cstdint>

#include "queue.cuh"

namespace geometry::gpu {

template <class T>
struct Forward {
    Warps<T> warps;
    T* result;
    bool is_planar;
    int64_t pieces;
};

template <int taps, class T>
__global__ void forward(const Forward<T> job) {
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < job.pieces; at += step) {
        const Piece<T> piece(job.warps, at, job.is_planar);
        const Point point = job.warps.matrices.row(piece.number, piece.row).at(piece.column);
        interpolate_pixel<taps>(piece.from, point, job.result + piece.place, job.warps.result.channel_stride);
    }
}

template <int taps, class T>
void launch_forward(const Queue& queue, const Warps<T>& warps, T* result) {
    queue.launch(forward<taps, T>, warps.pieces(), {warps, result, warps.is_planar(), warps.pieces()});
}

}  // namespace geometry::gpu

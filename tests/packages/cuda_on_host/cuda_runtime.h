// The part of CUDA that the kernels of an operator library need, on the CPU. Included in place of CUDA's own header, it
// lets a C++ compiler build kernels, so that their indices and barriers can be tested without a GPU.
//
// Blocks run one after the other. The threads of a block take turns: each runs to its next __syncthreads(), in an order
// that changes with each launch. The process aborts if a thread exits while others wait for it.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

// The built-ins of a kernel
#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __shared__ static

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

inline dim3 gridDim, blockDim, blockIdx, threadIdx;

using cudaStream_t = void*;
using cudaError_t = int;

namespace cuda_on_host {

class Block {
  public:
    // Runs `body` for each thread of one block.
    template <class Body>
    void run(const Body& body, unsigned launch) {
        const std::size_t count = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
        while (fibers_.size() < count) fibers_.push_back(std::make_unique<Fiber>());
        call_ = [](const void* given) { (*static_cast<const Body*>(given))(); };
        body_ = &body;
        for (std::size_t i = 0; i < count; ++i) fibers_[i]->start();
        for (std::size_t waiting = count; waiting > 0;) {
            waiting = 0;
            for (std::size_t i = 0; i < count; ++i) {
                // Each order counts the numbers below `count` up or down, from a different start.
                const std::size_t turn = (i + 7 * launch) % count;
                resume(launch % 2 == 0 ? turn : count - 1 - turn);
                waiting += fibers_[current_]->is_waiting;
            }
            if (waiting > 0 && waiting < count) {
                std::fprintf(stderr, "%zu of %zu threads wait for the others, which have exited\n", waiting, count);
                std::abort();
            }
        }
    }

    void wait() { leave(true); }

  private:
    struct Fiber {
        ucontext_t context;
        std::vector<std::byte> stack = std::vector<std::byte>(std::size_t{1} << 16);
        bool is_waiting = false;

        void start() {
            getcontext(&context);
            context.uc_stack.ss_sp = stack.data();
            context.uc_stack.ss_size = stack.size();
            context.uc_link = nullptr;
            makecontext(&context, &Block::enter, 0);
        }
    };

    static void enter();

    void resume(std::size_t index) {
        current_ = index;
        const auto at = static_cast<unsigned>(index);
        threadIdx = dim3(at % blockDim.x, at / blockDim.x % blockDim.y, at / blockDim.x / blockDim.y);
        swapcontext(&scheduler_, &fibers_[index]->context);
    }

    void leave(bool waits) {
        Fiber& fiber = *fibers_[current_];
        fiber.is_waiting = waits;
        swapcontext(&fiber.context, &scheduler_);
    }

    std::vector<std::unique_ptr<Fiber>> fibers_;
    ucontext_t scheduler_{};
    std::size_t current_ = 0;
    void (*call_)(const void*) = nullptr;
    const void* body_ = nullptr;
};

inline Block the_block;
inline std::mutex one_launch;
inline unsigned launches = 0;
// A grid is reduced to this number of block columns, to test that each block does the work of the missing ones.
inline unsigned most_columns = ~0U;

inline void Block::enter() {
    the_block.call_(the_block.body_);
    the_block.leave(false);
}

}  // namespace cuda_on_host

inline void __syncthreads() {
    cuda_on_host::the_block.wait();
}

template <class Job>
cudaError_t cudaLaunchKernel(void (*kernel)(Job), dim3 grid, dim3 block, void** arguments, std::size_t /*shared*/,
                             cudaStream_t /*stream*/) {
    const std::lock_guard lock(cuda_on_host::one_launch);
    ++cuda_on_host::launches;
    grid.x = std::min(grid.x, cuda_on_host::most_columns);
    gridDim = grid;
    blockDim = block;
    const auto body = [&] { kernel(*static_cast<const Job*>(arguments[0])); };
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x; ++x) {
                blockIdx = dim3(x, y, z);
                cuda_on_host::the_block.run(body, cuda_on_host::launches);
            }
    return grid.x == 0 || grid.y == 0 || grid.z == 0;
}

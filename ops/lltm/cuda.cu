// The operators of op.py on the GPU: matrix products by PyTorch, and what stands between them in kernels of their own.
//
// Nothing waits for the GPU, and all goes to the stream that PyTorch uses: a CUDA graph can hold a whole sequence.
// Launches, where "product" is PyTorch's matrix product, and T are the steps:
//
//                      small (see small_step.cuh)     else
//     cell             1                              2, and a product
//     sequence         T                              T, and T + 1 products
//
// Backward, where all gradients are wanted: 2 or 3 and 3 products for `cell`; T + 2, and T + 2 products for `sequence`.
// Where an argument lies in an order that matrix products do not take, or a gradient has to, there are copies.
#include <opwright/op.h>

#include "cuda/cell.cuh"
#include "cuda/sequence.cuh"

OPWRIGHT_IMPL(lltm, CUDA, m) {
    m.impl("cell", OPWRIGHT_FN(lltm::gpu::cell));
    m.impl("cell_with_gates", OPWRIGHT_FN(lltm::gpu::cell_with_gates));
    m.impl("cell_with_gates_backward", OPWRIGHT_FN(lltm::gpu::cell_with_gates_backward));
    m.impl("sequence", OPWRIGHT_FN(lltm::gpu::sequence));
    m.impl("sequence_with_gates", OPWRIGHT_FN(lltm::gpu::sequence_with_gates));
    m.impl("sequence_with_gates_backward", OPWRIGHT_FN(lltm::gpu::sequence_with_gates_backward));
}

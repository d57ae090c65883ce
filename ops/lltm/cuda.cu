// The operators of op.py on the GPU: matrix products by PyTorch, and what stands between them in kernels of their own.
//
// Nothing waits for the GPU, and all goes to the stream that PyTorch uses: a CUDA graph can hold a whole sequence.
// How much is launched, for T steps; small sizes are those of small_step.cuh, and a product is PyTorch's:
//
//                   small        else                           backward, with all gradients
//     cell          1 kernel     2 kernels, 1 product           2 or 3 kernels, 3 products
//     sequence      T kernels    T kernels, T + 1 products      T + 2 kernels, T + 2 products
//
// Copies come with arguments in an order that products do not take, and with gradients that have to lie in such an
// order.
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

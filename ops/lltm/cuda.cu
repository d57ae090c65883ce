// The operators of op.py on the GPU: matrix products by PyTorch, and separate kernels for the rest.
//
// No call waits for the GPU, and all work runs on PyTorch's current stream: a CUDA graph can capture a whole sequence.
// The launches for T steps, where "small" sizes are those of small_step.cuh, and PyTorch computes the products:
//
//                           small                           else
//     cell                  1 kernel                        2 kernels, 1 product
//       its gradients       2 or 3 kernels                  2 or 3 kernels, 3 products
//     sequence              T kernels                       T kernels, T + 1 products
//       its gradients       2 T + 1 kernels, 3 products     T + 2 kernels, T + 2 products
//
// A small sequence with many features has one product in addition. Its gradients count as small up to a state of 341:
// their products are three times as deep.
// Copies are added for arguments with strides that products do not support, and for gradients that require such
// strides.
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

// Loops over whole tensors on the CPU, in PyTorch's threads, with the vectors of opwright/simd.h and the formula as the
// kernel.
//
// Element by element, with float32 and float64 kernels from one formula:
//
//     Tensor swiglu(const Tensor& gate, const Tensor& value) {
//         return opwright::elementwise<float, double>(
//             [](auto gate, auto value) OPWRIGHT_INLINE { return gate * sigmoid(gate) * value; }, gate, value);
//     }
//
// Row by row, where rows run along the last dimension:
//
//     Tensor softmax(const Tensor& x) {
//         return opwright::map_rows<float, double>(
//             [](auto result, auto x) OPWRIGHT_INLINE {
//                 const auto largest = max(x);
//                 const auto exponential = [=](auto x) OPWRIGHT_INLINE { return exp(x - largest); };
//                 const auto total = sum(exponential, x);
//                 result.set([=](auto x) OPWRIGHT_INLINE { return exponential(x) / total; }, x);
//             },
//             x);
//     }
//
//   parallel/elementwise.h  elementwise: one or several results, with flags that select them
//   parallel/rows.h         map_rows, reduce_rows; sum, max and min of a row
//   parallel/dtypes.h       the dtype of each C++ type: float, double, BFloat16, Half
//
// The tensors must be on the CPU and have the same dtype, one of those listed; a kernel with its own messages
// checks this first. Strides are arbitrary, and shapes broadcast as in PyTorch. bfloat16 and float16 are computed in
// float. Results are new row-major tensors, and do not depend on the number of threads.
#pragma once

#include <opwright/parallel/dtypes.h>
#include <opwright/parallel/elementwise.h>
#include <opwright/parallel/rows.h>

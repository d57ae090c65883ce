// Vectors for CPU kernels. A formula is written once, for vectors of any width, and compiled for each instruction set;
// the widest that the processor supports is selected at run time. Does not depend on PyTorch.
//
//     namespace simd = opwright::simd;
//
//     struct Scale {
//         const float* from;
//         float* into;
//         template <int bytes>
//         OPWRIGHT_INLINE void run(int64_t begin, int64_t end) const {
//             using Floats = simd::Vector<float, bytes>;
//             for (int64_t i = begin; i < end; i += Floats::lanes) {
//                 const int64_t count = std::min<int64_t>(Floats::lanes, end - i);
//                 sigmoid(Floats::load(from + i, count)).store(into + i, count);
//             }
//         }
//     };
//     simd::run(Scale{from, into}, 0, size);
//
//   simd/instruction_set.h  run(job, begin, end): a job compiled for each instruction set
//   simd/vector.h           Vector<Number, bytes>: memory, arithmetic, comparisons, tails
//   simd/integers.h         Integers<Number, bytes>, as wide as the numbers, and masks
//   simd/functions.h        exp, expm1, log, sigmoid, tanh and erf, with the accuracy of each
//
// For loops over whole tensors in PyTorch's threads, where a kernel is just its formula, see opwright/parallel.h.
#pragma once

#include <opwright/simd/functions.h>
#include <opwright/simd/instruction_set.h>
#include <opwright/simd/vector.h>

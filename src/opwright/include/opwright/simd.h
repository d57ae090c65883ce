// Vectors for kernels on the CPU: a formula is written once, for vectors of any width, and compiled for each
// instruction set; the widest that the processor supports is chosen when it runs. Nothing of PyTorch is needed.
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
//   simd/instruction_set.h  run(job, begin, end): the job, compiled for each instruction set
//   simd/vector.h           Vector<Number, bytes>: memory, arithmetic, comparisons, tails
//   simd/integers.h         Integers<Number, bytes>, as wide as the numbers, and masks
//   simd/functions.h        exp, expm1, log, sigmoid, tanh, erf, and how accurate each is
//
// Loops over whole tensors, in PyTorch's threads, are in opwright/parallel.h: with them, a kernel is its formula.
#pragma once

#include <opwright/simd/functions.h>
#include <opwright/simd/instruction_set.h>
#include <opwright/simd/vector.h>

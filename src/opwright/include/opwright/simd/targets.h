// The instructions that functions with vectors of 32 and of 64 bytes are compiled for. Vectors of 16 bytes are compiled
// for what the compiler is told to use: SSE2 or NEON, if it is told nothing.
#pragma once

#if defined(__x86_64__)
#define OPWRIGHT_SIMD_AVX2 [[gnu::target("avx2,fma,f16c")]]
#define OPWRIGHT_SIMD_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]]
#endif

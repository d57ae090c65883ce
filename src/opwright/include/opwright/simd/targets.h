// The instruction sets for functions with vectors of 32 and 64 bytes. Vectors of 16 bytes use the compiler's default
// instruction set, which is SSE2 or NEON unless a flag changes it.
#pragma once

#if defined(__x86_64__)
#define OPWRIGHT_SIMD_AVX2 [[gnu::target("avx2,fma,f16c")]]
#define OPWRIGHT_SIMD_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]]
#endif

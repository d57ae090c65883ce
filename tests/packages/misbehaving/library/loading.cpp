#include "scaled.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace {

__attribute__((constructor)) void flush_denormals() {
#if defined(__x86_64__)
    _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
#elif defined(__aarch64__)
    uint64_t control = 0;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    asm volatile("msr fpcr, %0" : : "r"(control | (uint64_t{1} << 24)));
#endif
}

}  // namespace

OPWRIGHT_IMPL(misbehaving_library, CPU, m) {
    m.impl("scaled", OPWRIGHT_FN(scaled));
}

"""Finds which processor features machine code needs from the macros that the compiler defines for its flags."""

from __future__ import annotations

import platform
import re
from typing import TYPE_CHECKING

from opwright.errors import BundleError
from opwright.toolchain.compiler import find_cxx
from opwright.toolchain.run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PLAIN = "-march=x86-64"
# Linux's name for a feature, keyed by the compiler's macro, where it is not that macro in lower case.
_LINUX_NAMES = {
    "__ABM__": "abm",
    "__AVX512BF16__": "avx512_bf16",
    "__AVX512BITALG__": "avx512_bitalg",
    "__AVX512FP16__": "avx512_fp16",
    "__AVX512VBMI2__": "avx512_vbmi2",
    "__AVX512VNNI__": "avx512_vnni",
    "__AVX512VP2INTERSECT__": "avx512_vp2intersect",
    "__AVX512VPOPCNTDQ__": "avx512_vpopcntdq",
    "__AVX5124FMAPS__": "avx512_4fmaps",
    "__AVX5124VNNIW__": "avx512_4vnniw",
    "__AVXIFMA__": "avx_ifma",
    "__AVXNECONVERT__": "avx_ne_convert",
    "__AVXVNNI__": "avx_vnni",
    "__AVXVNNIINT8__": "avx_vnni_int8",
    "__AVXVNNIINT16__": "avx_vnni_int16",
    "__BMI__": "bmi1",
    "__CMPCCXADD__": "cmpccxadd",
    "__CRC32__": "sse4_2",
    "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16": "cx16",
    "__LAHF_SAHF__": "lahf_lm",
    "__LZCNT__": "abm",
    "__PCLMUL__": "pclmulqdq",
    "__PRFCHW__": "3dnowprefetch",
    "__SHA__": "sha_ni",
    "__SSE3__": "pni",
}
_SAME_NAMES = frozenset(
    {"adx", "aes", "amx_bf16", "amx_complex", "amx_fp16", "amx_int8", "amx_tile", "avx", "avx2", "avx512bw", "avx512cd"}
    | {"avx512dq", "avx512er", "avx512f", "avx512ifma", "avx512pf", "avx512vbmi", "avx512vl", "bmi2", "f16c", "fma"}
    | {"fma4", "gfni", "movbe", "popcnt", "sha512", "sm3", "sm4", "sse4_1", "sse4_2", "sse4a", "ssse3", "tbm"}
    | {"vaes", "vpclmulqdq", "xop"}
)
# Features that no compiler uses unasked and no numeric code needs: system features, hints, timing, random seeds.
# (Linux hides the RDSEED of some processors, because it is faulty, while compilers still detect it.)
_OF_NO_MATTER = frozenset(
    {"__CLDEMOTE__", "__CLFLUSHOPT__", "__CLWB__", "__CLZERO__", "__ENQCMD__", "__FSGSBASE__", "__HRESET__", "__KL__"}
    | {"__MOVDIR64B__", "__MOVDIRI__", "__MWAITX__", "__PCONFIG__", "__PKU__", "__PREFETCHI__", "__PREFETCHWT1__"}
    | {"__PTWRITE__", "__RAOINT__", "__RDPID__", "__RDPRU__", "__RDRND__", "__RDSEED__", "__RTM__", "__SERIALIZE__"}
    | {"__SGX__", "__SHSTK__"}
    | {"__HLE__", "__LWP__", "__MWAIT__", "__TSXLDTRK__", "__UINTR__", "__USER_MSR__", "__WAITPKG__", "__WBNOINVD__"}
    | {"__WIDEKL__", "__XSAVEC__", "__XSAVEOPT__", "__XSAVES__", "__XSAVE__"}
)
# Not features: sizes, rounding modes, processor names, and what the compiler inlines.
_NO_FEATURE = re.compile(
    r"__BIGGEST_ALIGNMENT__|__(?:FLT|DBL|LDBL|BFLT|STDCPP)\d*_.*|__FP_FAST_.*|__EVEX(?:256|512)__|__[a-z].*"
    r"|__GCC_IEC_.*|__SSE\d?_MATH__|__LONG_DOUBLE.*|__GCC_HAVE_SYNC_COMPARE_AND_SWAP_[1248]|__STDC.*"
)


def features_needed(flags: Sequence[str], on_unknown: Callable[[str], None]) -> tuple[str, ...]:
    """The features, as Linux names them, that code compiled with `flags` may use beyond the x86-64 baseline.

    Args:
        flags: the compiler's flags; those that do not select a processor are ignored.
        on_unknown: called with a sentence for each unknown feature, which the result lacks.

    Raises:
        BundleError: the processor is not an x86-64, or the compiler rejects the flags.
        ToolchainError: there is no compiler.
    """
    chosen = [flag for flag in flags if re.match(r"-m(?!tune=|cmodel=|prefer-vector-width=)", flag)]
    if not chosen:
        return ()
    if platform.machine() != "x86_64":
        words = " ".join(chosen)
        msg = f"the features that {words} needs on {platform.machine()} are unknown to opwright: omit these flags"
        raise BundleError(msg)
    defined = _macros(chosen) - _macros([_PLAIN])
    found = set()
    for macro in sorted(defined - _OF_NO_MATTER):
        lower = macro.strip("_").lower()
        if macro in _LINUX_NAMES or lower in _SAME_NAMES:
            found.add(_LINUX_NAMES.get(macro, lower))
        elif not _NO_FEATURE.fullmatch(macro):
            on_unknown(f"the compiler may use {macro.strip('_')}, which is unknown to opwright: no host checks for it")
    return tuple(sorted(found))


def _macros(flags: Sequence[str]) -> set[str]:
    cxx = find_cxx()
    done = run([*cxx.command, *flags, "-dM", "-E", "-x", "c++", "/dev/null"], check=False)
    if done.exit_code != 0:
        first = next((line for line in done.output.splitlines() if "error" in line), done.output.strip())
        msg = f"the compiler rejects {' '.join(flags)}: {first}"
        raise BundleError(msg)
    return set(re.findall(r"^#define (\w+)", done.output, flags=re.MULTILINE))

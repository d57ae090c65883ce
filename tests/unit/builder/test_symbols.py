from __future__ import annotations

import pytest

from opwright.builder.symbols import _LAUNCHER, _namespace


@pytest.mark.parametrize(
    ("symbol", "namespace"),
    [
        ("opwright_defines_my_ops", "my_ops"),
        ("_ZL32TORCH_LIBRARY_static_init_my_ops", "my_ops"),
        ("_ZL39STABLE_TORCH_LIBRARY_static_init_my_ops", "my_ops"),
        ("_ZN12_GLOBAL__N_1L32TORCH_LIBRARY_static_init_my_opsE", "my_ops"),
        ("_ZN4mine12_GLOBAL__N_1L32TORCH_LIBRARY_static_init_my_opsE", "my_ops"),
        ("_ZN12_GLOBAL__N_1L41TORCH_LIBRARY_IMPL_static_init_my_ops_CPUE", None),
        ("_ZL41TORCH_LIBRARY_IMPL_static_init_my_ops_CPU", None),
        ("_Z6my_opsv", None),
    ],
)
def test_a_definition_is_recognized_by_the_symbol_of_its_macro(symbol: str, namespace: str | None) -> None:
    assert _namespace(symbol) == namespace


@pytest.mark.parametrize(
    "symbol",
    [
        "_Z89__device_stub__ZN47_GLOBAL__N__0a44_9_faulty_cu_fb58_2227314differences_ofEPKfPflPKfPfl",
        "_ZZ89__device_stub__ZN47_GLOBAL__N__0a44_9_faulty_cu_fb58_2227314differences_ofEPKfPflPKfPflE8__handle",
        "_ZGVZL89__device_stub__ZN47_GLOBAL__N__0a44_9_faulty_cu_fb58_2227314differences_ofEPKfPfliPfiE5__tmp",
    ],
)
def test_the_launcher_of_a_kernel_is_recognized_by_the_length_of_its_name(symbol: str) -> None:
    launcher = _LAUNCHER.search(symbol)
    assert launcher is not None
    assert launcher[1] == "89"
    assert launcher[2].startswith("_ZN47_GLOBAL__N__0a44_9_faulty_cu_fb58_2227314differences_ofEPKfPfl")

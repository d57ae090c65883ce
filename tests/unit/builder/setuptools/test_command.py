from __future__ import annotations

from typing import Any

import pytest
from setuptools import Distribution, Extension

from opwright.builder.setuptools.command import BuildExtension
from opwright.errors import SpecError, ToolchainError


def command(*extensions: Extension, kind: type[BuildExtension] = BuildExtension) -> BuildExtension:
    made = kind(Distribution({"name": "mine", "ext_modules": list(extensions)}))
    made.ensure_finalized()
    return made


def test_options_are_given_to_a_subclass() -> None:
    made = command(Extension("a.b", []), kind=BuildExtension.with_options(use_ninja=False, no_python_abi_suffix=True))
    assert (made.use_ninja, made.no_python_abi_suffix) == (False, True)
    assert made.get_ext_filename("a.b") == "a/b.so"
    assert ".cpython-" in command(Extension("a.b", [])).get_ext_filename("a.b")


def test_a_subclass_can_give_options_to_its_constructor() -> None:
    class Chosen(BuildExtension):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, no_python_abi_suffix=True, use_ninja=False, **kwargs)

    assert command(kind=Chosen).no_python_abi_suffix


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"with_options does not support use_mold: expected no_python_abi_suffix, use_"):
        BuildExtension.with_options(use_mold=True)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"cxx": [], "hipcc": ["-O2"]},
            "extra_compile_args of 'a' has flags for 'hipcc', which opwright does not call",
        ),
        ({"cxx": "-O2"}, "extra_compile_args of 'a' contains the text '-O2': expected a list of flags"),
    ],
)
def test_flags_for_nobody_are_refused(flags: Any, message: str) -> None:
    made = command(Extension("a", ["a.cpp"], extra_compile_args=flags))
    made.compiler = _Unix()
    with pytest.raises(SpecError, match=message):
        made.build_extension(made.extensions[0])


def test_sources_of_other_kinds_are_refused_before_anything_is_built() -> None:
    with pytest.raises(ToolchainError, match=r"the extension 'a' has sources that end in \.hip, \.sycl: opwright"):
        command(Extension("a", ["a.sycl", "b.hip", "c.cpp"])).build_extensions()


class _Unix:
    compiler_type = "unix"
    src_extensions = (".cpp",)

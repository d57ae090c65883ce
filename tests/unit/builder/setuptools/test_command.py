from __future__ import annotations

from typing import Any

import pytest
from setuptools import Distribution, Extension

from opwright.builder.setuptools.command import BuildExtension, _add_flags
from opwright.errors import SpecError, ToolchainError


def command(*extensions: Extension, kind: type[BuildExtension] = BuildExtension) -> BuildExtension:
    made = kind(Distribution({"name": "mine", "ext_modules": list(extensions)}))
    made.ensure_finalized()
    return made


def test_options_are_passed_to_a_subclass() -> None:
    made = command(Extension("a.b", []), kind=BuildExtension.with_options(use_ninja=False, no_python_abi_suffix=True))
    assert (made.use_ninja, made.no_python_abi_suffix) == (False, True)
    assert made.get_ext_filename("a.b") == "a/b.so"
    assert ".cpython-" in command(Extension("a.b", [])).get_ext_filename("a.b")


def test_a_subclass_can_pass_options_to_its_constructor() -> None:
    class Chosen(BuildExtension):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, no_python_abi_suffix=True, use_ninja=False, **kwargs)

    assert command(kind=Chosen).no_python_abi_suffix


def test_options_of_build_ext_are_accepted_and_others_cause_a_warning() -> None:
    made = command(kind=BuildExtension.with_options(parallel=3, build_lib="there"))
    assert (made.parallel, made.build_lib) == (3, "there")
    with pytest.warns(UserWarning, match="Unknown BuildExtension options: 'use_mold'"):
        command(kind=BuildExtension.with_options(use_mold=True))


def test_flags_for_another_compiler_cause_a_warning() -> None:
    flags: Any = {"cxx": [], "hipcc": ["-O2"]}
    with pytest.warns(
        UserWarning, match="extra_compile_args of 'a' has flags for 'hipcc', which are ignored: expected"
    ):
        _add_flags(Extension("a", ["a.cpp"], extra_compile_args=flags))


def test_flags_in_a_string_are_rejected() -> None:
    flags: Any = {"cxx": "-O2"}
    with pytest.raises(
        SpecError, match="extra_compile_args of 'a' contains the string '-O2': expected a list of flags"
    ):
        _add_flags(Extension("a", ["a.cpp"], extra_compile_args=flags))


def test_unsupported_sources_are_rejected_before_anything_is_built() -> None:
    with pytest.raises(ToolchainError, match=r"the extension 'a' has sources that end in \.hip, \.sycl: opwright"):
        command(Extension("a", ["a.sycl", "b.hip", "c.cpp"])).build_extensions()

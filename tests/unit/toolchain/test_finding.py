from __future__ import annotations

import contextlib
import importlib.util
import types
from typing import TYPE_CHECKING

import pytest
import torch

from opwright.errors import ToolchainError
from opwright.toolchain import compiler, compute_sanitizer, packages, pytorch

if TYPE_CHECKING:
    from pathlib import Path


def program(path: Path, *lines: str) -> Path:
    """Writes a shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]))
    path.chmod(0o755)
    return path


def test_cxx_may_name_a_compiler_with_a_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = program(tmp_path / "ccache")
    monkeypatch.setenv("CXX", f"{wrapper} g++")
    found = compiler.find_cxx()
    assert found.command == [str(wrapper), "g++"]
    assert found.host == "g++"
    # Inductor treats all of CXX as the name of one program.
    assert compiler.inductor_settings() == {"cpp.cxx": (None, "g++")}
    monkeypatch.setenv("CXX", "g++")
    assert compiler.inductor_settings() == {}


def test_a_cxx_that_does_not_exist_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/no/such/g++")
    with pytest.raises(ToolchainError, match=r"\$CXX names /no/such/g\+\+, which is not an executable program"):
        compiler.find_cxx()


def test_a_free_threaded_python_is_rejected_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.abiflags", "t")
    with pytest.raises(
        ToolchainError, match=r"^\S+ is a free-threaded build of Python, which .* not support: use [^\n]+$"
    ):
        pytorch.find_pytorch()


def test_without_a_compiler_the_error_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"no C\+\+ compiler: .* install the package g\+\+"):
        compiler.find_cxx()


@pytest.mark.parametrize(
    ("printed", "compiler_name", "for_pytorch", "for_opwright"),
    [
        ("g++ (Debian 9.3.0) 9.3.0", "g++ 9.3.0", False, False),
        ("c++ (GCC) 8.5.0 20210514 (Red Hat 8.5.0-28)", "g++ 8.5.0", False, False),
        ("g++-10 (Debian 10.2.1-6) 10.2.1 20210110", "g++ 10.2.1", True, False),
        ("Ubuntu clang version 10.0.0-4ubuntu1", "clang++ 10.0.0", False, False),
        ("g++ (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0", "", True, True),
        ("x86_64-conda-linux-gnu-c++ (conda-forge gcc 12.3.0-3) 12.3.0", "", True, True),
        ("Debian clang version 14.0.6", "", True, True),
        ("a compiler of another kind", "", True, True),
    ],
)
def test_a_compiler_that_is_too_old_is_rejected(
    printed: str, compiler_name: str, for_pytorch: bool, for_opwright: bool, tmp_path: Path
) -> None:
    path = program(tmp_path / "cxx", f"echo '{printed}'")
    for opwrights, is_accepted, oldest in (
        (False, for_pytorch, "g++ 10 or clang++ 11"),
        (True, for_opwright, "g++ 11 or clang++ 13"),
    ):
        with contextlib.nullcontext() if is_accepted else pytest.raises(ToolchainError) as raised:
            compiler.Compiler(path).check_release(opwrights=opwrights)
        assert raised is None or str(raised.value) == (
            f"{compiler_name} ({path}) is too old: opwright compiles C++20, which requires {oldest}, or newer. "
            "Install one, and set the environment variable CXX to it, such as CXX=g++-12"
        )


def test_a_cuda_home_without_nvcc_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUDACXX", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"\$CUDA_HOME names .*/bin/nvcc, which is not an executable program"):
        compiler.find_nvcc()


def test_two_names_of_one_gcc_have_the_same_cache_keys_but_two_compilers_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("x86_64-linux-gnu-g++-12", "clang-14"):
        program(tmp_path / name)
    for name, target in {"g++": "x86_64-linux-gnu-g++-12", "c++": "g++", "clang++": "clang-14"}.items():
        (tmp_path / name).symlink_to(target)
    identities = [compiler.Compiler(tmp_path / name).identity for name in ("g++", "c++", "clang++", "clang-14")]
    assert identities[0] == identities[1]
    # clang-14 compiles as C under its own name, and as C++ under the other.
    assert identities[0] != identities[2] != identities[3]
    assert compiler.Compiler(tmp_path / "c++", ("-m32",)).identity != identities[0]


def test_the_toolkit_is_found_behind_a_wrapper(tmp_path: Path) -> None:
    wrapper = program(tmp_path / "bin" / "nvcc", "echo '#$ _HERE_=/opt/cuda/bin'")
    assert str(compiler.cuda_home(compiler.Compiler(wrapper))) == "/opt/cuda"


@pytest.mark.parametrize("folder", ["bin", "compute-sanitizer"])
def test_compute_sanitizer_is_found_in_the_toolkit_before_the_path(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_PATH", raising=False)
    of_home = program(tmp_path / "home" / folder / "compute-sanitizer")
    of_path = program(tmp_path / "path" / "compute-sanitizer")
    monkeypatch.setenv("PATH", str(of_path.parent))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert compute_sanitizer.find_compute_sanitizer() == of_home
    monkeypatch.delenv("CUDA_HOME")
    assert compute_sanitizer.find_compute_sanitizer() == of_path


def test_without_compute_sanitizer_the_error_lists_the_searched_places(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compute_sanitizer, "_USUAL_HOME", str(tmp_path / "usual"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", "/opt/cuda")
    monkeypatch.delenv("CUDA_PATH", raising=False)
    with pytest.raises(ToolchainError) as raised:
        compute_sanitizer.find_compute_sanitizer()
    message = str(raised.value)
    for place in ("the PATH", "/opt/cuda/bin", "/opt/cuda/compute-sanitizer", str(tmp_path / "usual/bin")):
        assert place in message
    assert "set CUDA_HOME to the folder of a toolkit that has it" in message


def test_the_installed_pytorch_is_found_without_importing_it() -> None:
    found = pytorch.find_pytorch()
    assert found.version == torch.__version__
    assert found.cuda == torch.version.cuda
    assert found.commit == torch.version.git_version
    assert (found.lib_dir / "libtorch_cpu.so").is_file()


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("2.9.1+cu128", r"PyTorch 2\.9\.1\+cu128 is too old: opwright requires 2\.11 or newer"),
        ("2.13.0", r"has no C\+\+ headers"),
    ],
)
def test_a_pytorch_that_is_too_old_or_has_no_headers_is_rejected(
    version: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"__version__ = '{version}'\ncuda: Optional[str] = None\ngit_version = 'abc'\n"
    (tmp_path / "version.py").write_text(text)
    spec = types.SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    with pytest.raises(ToolchainError, match=message):
        pytorch.find_pytorch()


def test_no_pytorch_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ToolchainError, match=r"PyTorch is not installed for this Python: install torch 2\.11 or newer"):
        pytorch.find_pytorch()


@pytest.mark.needs("opencv")
def test_a_packages_headers_become_system_headers() -> None:
    opencv = packages.find_package("opencv4")
    assert not any(flag.startswith("-I") for flag in opencv.cflags)
    assert "-lopencv_imgproc" in opencv.ldflags
    assert opencv.version.startswith("4.")


def test_the_error_for_a_missing_package_names_its_pc_file() -> None:
    with pytest.raises(ToolchainError, match=r"'no-such-package' is not installed.*looked for no-such-package\.pc"):
        packages.find_package("no-such-package")


@pytest.mark.parametrize(
    ("requires", "message"),
    [
        ("Requires: no-such", r"'mine' requires the package 'no-such', which is not installed.*looked for no-such\.pc"),
        ("Requires.private: no-such", r"'mine' requires the package 'no-such', which is not installed"),
        ("Requires: other >= 9", r"pkg-config rejects the package 'mine': .*other"),
    ],
)
def test_the_error_names_the_package_that_another_one_requires(
    requires: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PKG_CONFIG_PATH", str(tmp_path))
    for name, line in (("mine", requires), ("other", "")):
        (tmp_path / f"{name}.pc").write_text(f"Name: {name}\nDescription: {name}\nVersion: 1\n{line}\n")
    with pytest.raises(ToolchainError, match=f"(?s){message}"):
        packages.find_package("mine")


def test_a_missing_pkg_config_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PKG_CONFIG", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError, match="pkg-config, which finds opencv4, is not installed: install"):
        packages.find_package("opencv4")


def test_the_versions_of_several_packages_omit_missing_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKG_CONFIG_PATH", str(tmp_path))
    for name, version in (("one", "1.5"), ("two", "2.0.1")):
        (tmp_path / f"{name}.pc").write_text(f"Name: {name}\nDescription: {name}\nVersion: {version}\n")
    assert packages.package_versions(["two", "one"]) == {"two": "2.0.1", "one": "1.5"}
    assert packages.package_versions(["two", "no-such-package", "one"]) == {"two": "2.0.1", "one": "1.5"}

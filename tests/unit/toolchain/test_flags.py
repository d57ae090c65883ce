from __future__ import annotations

import pytest

from opwright.errors import ToolchainError
from opwright.toolchain import flags
from opwright.toolchain.packages import Package
from opwright.toolchain.pytorch import find_pytorch

OPENCV = Package("opencv4", "4.6.0", ("-isystem", "/usr/include/opencv4"), ("-lopencv_core", "-lopencv_imgproc"))


def test_a_stable_library_targets_the_oldest_pytorch_and_hides_its_symbols() -> None:
    cxx = flags.cxx_flags("stable", find_pytorch(), "mine")
    assert "-DTORCH_TARGET_VERSION=0x020b000000000000" in cxx
    assert "-fvisibility=hidden" in cxx
    assert not any("TORCH_EXTENSION_NAME" in flag for flag in cxx)


def test_a_full_library_gets_its_name_but_no_target_version() -> None:
    cxx = flags.cxx_flags("full", find_pytorch(), "mine")
    assert "-DTORCH_EXTENSION_NAME=mine" in cxx
    assert not any("TORCH_TARGET_VERSION" in flag for flag in cxx)


def test_headers_of_pytorch_and_of_packages_are_system_headers() -> None:
    cxx = flags.cxx_flags("full", find_pytorch(), "mine", packages=[OPENCV])
    own = [flag for flag in cxx if flag.startswith("-I")]
    assert own == [f"-I{flags.include_path()}"]


def test_torch_is_always_linked_but_unused_package_libraries_are_not() -> None:
    link = flags.link_flags("stable", find_pytorch(), packages=[OPENCV])
    kept = link.index("-Wl,--push-state,--no-as-needed")
    dropped = link.index("-Wl,--push-state,--as-needed")
    assert kept < link.index("-ltorch") < dropped < link.index("-lopencv_core")


def test_architectures_become_code_and_ptx() -> None:
    assert flags.cuda_architectures("8.0;9.0a+PTX") == [
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90a,code=[sm_90a,compute_90a]",
    ]


def test_clang_gets_no_flags_that_only_gcc_supports_even_through_nvcc() -> None:
    torch = find_pytorch()
    for command in (flags.cxx_flags("stable", torch, "mine"), flags.cuda_flags("stable", torch, "mine")):
        spared = flags.for_clang(command)
        assert any("gnu-unique" in word for word in command)
        assert not any("gnu-unique" in word for word in spared)
        assert len(command) - len(spared) == ("-fno-gnu-unique" in command)
    assert "-Xcompiler=-fPIC,-fvisibility=hidden" in spared


def test_nvcc_gets_one_optimization_level() -> None:
    for debug, level in ((False, "-O3"), (True, "-O0")):
        command = flags.cuda_flags("stable", find_pytorch(), "mine", debug=debug)
        assert [word for word in command if word.startswith("-O")] == [level]
        assert ("-G" in command) == debug


@pytest.mark.parametrize("entry", ["sm_80", "80", "9.0+ptx", "native"])
def test_an_invalid_architecture_is_rejected(entry: str) -> None:
    with pytest.raises(ToolchainError, match=r"TORCH_CUDA_ARCH_LIST contains '.*'; expected entries such as 9\.0"):
        flags.cuda_architectures(entry)

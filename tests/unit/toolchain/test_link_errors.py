"""What users see of the errors of a linker."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwright.toolchain.diagnostics import first_error

# The beginning of a message, and the output of a linker that it explains.
MESSAGES = [
    (message.strip("\n"), output.strip("\n"))
    for block in (Path(__file__).parent / "linkers.txt").read_text().split("========\n")[1:]
    for message, *outputs in [block.split("--------\n")]
    for output in outputs
]
END = "\ncollect2: error: ld returned 1 exit status\n"
OWN = (
    "fix: add the source that defines it to sources=, or its library to packages= or, as -lNAME, to the linker's flags"
)
# An undefined symbol of a.cpp, and what to do.
HINTS = {
    "elsewhere(int)": OWN,
    "deflate": OWN,
    "at::Tensor mine::scaled<float>(at::Tensor const&)": OWN,
    "vtable for Circle": "likely cause: Circle declares a virtual function that nothing defines",
    "typeinfo for mine::Base": "likely cause: mine::Base declares a virtual function that nothing defines",
    "at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&)": "likely cause: it belongs to PyTorch's",
    "vtable for c10::TensorImpl": "likely cause: it belongs to PyTorch's unstable C++ API",
    "c10::cuda::getCurrentCUDAStream(signed char)": "fix: add -ltorch_cuda -lc10_cuda",
    "c10::warn(std::string)": "likely cause: a.cpp was compiled with -D_GLIBCXX_USE_CXX11_ABI=0, but PyTorch was not",
    "THPVariable_Wrap(at::Tensor const&)": "fix: operator libraries are not linked with Python",
    "PyList_New": "fix: operator libraries are not linked with Python",
    "pybind11::detail::get_internals()": "fix: operator libraries are not linked with Python",
    "memcpy@GLIBC_2.38": "likely cause: a.cpp was built for a newer system, whose libraries have GLIBC_2.38",
    "cv::noArray()": 'fix: add packages=["opencv4"], or what `pkg-config --libs opencv4` prints to the linker\'s flags',
    "GOMP_parallel": "fix: add -fopenmp not only to the compiler's flags, but also to the linker's flags (ldflags= in",
    "__asan_register_globals": "fix: add -fsanitize=, with the same value as for the compiler, to the linker's flags",
    "cublasCreate_v2": "fix: add -lcublas to the linker's flags",
    "__cudaPushCallConfiguration": "fix: add -lcudart to the linker's flags",
    "main": "fix: define the function main, in which a program starts",
}


@pytest.mark.parametrize(("message", "output"), MESSAGES)
def test_an_error_begins_with_what_is_wrong_and_what_to_do_and_ends_with_the_linkers_lines(
    message: str, output: str
) -> None:
    shown = first_error(output + END).text
    assert shown.startswith(message), shown
    assert shown.splitlines()[-1] in output


@pytest.mark.parametrize(("symbol", "text"), HINTS.items())
def test_the_name_of_a_symbol_shows_what_to_do(symbol: str, text: str) -> None:
    output = f"/usr/bin/ld: a.o: in function `f()':\na.cpp:(.text+0xa): undefined reference to `{symbol}'"
    assert first_error(output + END).text.splitlines()[1].startswith(f"  {text}")


def test_the_fix_for_an_archive_names_its_pkg_config_package_if_there_is_one(tmp_path: Path) -> None:
    archive = tmp_path / "libcrypto.a"
    output = f"/usr/bin/ld: {archive}(c_zlib.o): in function `f':\nc.c:(.text+0xa): undefined reference to `inflate'"
    fix = "  fix: link the libraries that libcrypto.a itself requires after it{}, or link libcrypto.so instead of it"
    assert first_error(output + END).text.splitlines()[1] == fix.format("")
    (tmp_path / "pkgconfig").mkdir()
    (tmp_path / "pkgconfig" / "libcrypto.pc").touch()
    known = fix.format(" (`pkg-config --static --libs libcrypto` lists them)")
    assert first_error(output + END).text.splitlines()[1] == known


def test_five_symbols_and_fourteen_lines_are_shown_and_the_rest_is_counted() -> None:
    missing = [f"a.cpp:(.text+0x{at}): undefined reference to `f{at}()'" for at in range(20)]
    shown = first_error("\n".join(["/usr/bin/ld: a.o: in function `g()':", *missing]) + END).text.splitlines()
    assert shown[0] == "20 undefined symbols, which a.cpp needs:"
    assert shown[1:7] == ["    f0()", "    f1()", "    f2()", "    f3()", "    f4()", "    and 15 more"]
    assert shown[8:] == ["/usr/bin/ld: a.o: in function `g()':", *missing[:13], "(and 7 more errors)"]


def test_different_errors_have_a_sentence_each_and_equal_fixes_are_shown_once() -> None:
    output = (
        "/usr/bin/ld: cannot find -lone: No such file or directory\n"
        "/usr/bin/ld: cannot find -ltwo: No such file or directory\n"
        "/usr/bin/ld: a.o: in function `f()':\na.cpp:(.text+0xa): undefined reference to `main'"
    )
    shown = first_error(output + END).text.splitlines()
    assert [line.partition(" was")[0] for line in shown[:2]] == ["the library -lone", "the library -ltwo"]
    assert shown[2].startswith("  fix: install its development package")
    assert shown[3:5] == ["undefined symbol main, which a.cpp needs", f"  {HINTS['main']}, in one of the sources"]
    assert shown[5:] == output.splitlines()


def test_the_linkers_lines_are_found_in_the_output_of_cmake() -> None:
    output = (
        "[1/2] Building CXX object a.cpp.o\na.cpp:1:5: warning: unused variable 'x' [-Wunused-variable]\n"
        "[2/2] Linking CXX executable a\nFAILED: a \n: && /usr/bin/c++ -lfoo a.cpp.o -o a && :\n"
        f"/usr/bin/ld: cannot find -lfoo: No such file or directory{END}ninja: build stopped: subcommand failed.\n"
    )
    shown = first_error(output).text.splitlines()
    assert shown[0].startswith("the library -lfoo was not found")
    assert shown[2:] == ["/usr/bin/ld: cannot find -lfoo: No such file or directory"]


@pytest.mark.parametrize("compilers_first", [True, False])
def test_of_a_compilers_and_a_linkers_error_the_first_is_shown(compilers_first: bool) -> None:
    of_compiler, of_linker = "a.cpp:1:5: error: no", "/usr/bin/ld: cannot find -lfoo: No such file or directory"
    pair = [of_compiler, of_linker] if compilers_first else [of_linker, of_compiler]
    assert first_error("\n".join(pair)).text.startswith("a.cpp" if compilers_first else "the library -lfoo")


def test_opwrights_own_sources_are_not_for_the_user_to_correct() -> None:
    output = "/usr/bin/ld: a.o: in function `f()':\na.cpp:(.text+0xa): undefined reference to `png_create_read_struct'"
    shown = first_error(output + END, is_authors=False).text.splitlines()[1]
    assert shown == "  likely cause: the headers and the library of a package are of different versions: reinstall both"

"""A library or model of a different version than the one shipped is refused before it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.integration.host.shims import compile_c

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.integration.host.conftest import Bundle, Host, Loads, Refused

LIBRARY = "lib/blended.so"
SHIPPED = "blended::blend(Tensor x, float scale=2., float offset=1.) -> Tensor"


@dataclass(frozen=True)
class Version:
    """An operator library with a change that its author might make."""

    parameters: str = "double scale, double offset"
    schema: str = "blend(Tensor x, float scale=2.0, float offset=1.0) -> Tensor"
    device: str = "CPU"
    space: str = "blended"

    @property
    def source(self) -> str:
        name = self.schema.partition("(")[0]
        return f"""
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>
using opwright::Tensor;
namespace {{ Tensor {name}([[maybe_unused]] Tensor x, {self.parameters}) {{ return torch::stable::clone(x); }} }}
OPWRIGHT_LIBRARY({self.space}, m) {{ m.def("{self.schema}"); }}
OPWRIGHT_IMPL({self.space}, {self.device}, m) {{ m.impl("{name}", OPWRIGHT_FN({name})); }}
"""


# The rebuilt library, the code, and the message.
REBUILT = {
    "an added argument with a default": (
        Version(
            "double, double, double", "blend(Tensor x, float scale=2.0, float power=1.0, float offset=1.0) -> Tensor"
        ),
        "schema_changed",
        "has blended::blend(Tensor x, float scale=2., float power=1., float offset=1.) -> Tensor",
    ),
    "two swapped arguments": (
        Version("double, double", "blend(Tensor x, float offset=1.0, float scale=2.0) -> Tensor"),
        "schema_changed",
        "has blended::blend(Tensor x, float offset=1., float scale=2.) -> Tensor",
    ),
    "another type": (
        Version("double, int64_t", "blend(Tensor x, float scale=2.0, int offset=1) -> Tensor"),
        "schema_changed",
        "has blended::blend(Tensor x, float scale=2., int offset=1) -> Tensor",
    ),
    "a kernel for another device": (
        Version("double, double", device="CUDA"),
        "kernel_missing",
        "has no kernel for blended::blend on the device CPU",
    ),
    "another operator": (
        Version("double, double", "blends(Tensor x, float scale=2.0, float offset=1.0) -> Tensor"),
        "operator_missing",
        "has no operator blended::blend",
    ),
    "another namespace": (
        Version("double, double", space="mixed"),
        "operator_missing",
        "has no operator blended::blend",
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("what", REBUILT)
def test_a_rebuilt_library_must_keep_its_schemas(
    refused: Refused, bundle: Bundle, compile_library: Callable[..., Path], what: str
) -> None:
    version, code, why = REBUILT[what]
    bundle.put(LIBRARY, compile_library(version.source).read_bytes())
    refusal = refused(bundle)
    assert refusal.code == code
    assert refusal.message.startswith(f"the library {LIBRARY} {why}")
    if code != "kernel_missing":
        assert f"; the bundle was made with {SHIPPED}" in refusal.message


def test_a_library_rebuilt_with_the_same_schemas_is_accepted(
    refused: Refused, bundle: Bundle, compile_library: Callable[..., Path]
) -> None:
    bundle.put(LIBRARY, compile_library(Version("double, double").source).read_bytes())
    refusal = refused(bundle)
    # Its kernel computes something else, which the goldens detect.
    assert refusal.code == "golden_differs"
    assert "the output output_0 for goldens/0.pt differs by" in refusal.message


def test_a_missing_kernel_that_the_manifest_does_not_mention_fails_in_the_run(
    refused: Refused, bundle: Bundle, fitting: list[str], compile_library: Callable[..., Path]
) -> None:
    bundle.put(LIBRARY, compile_library(REBUILT["a kernel for another device"][0].source).read_bytes())
    bundle.say(lambda manifest: manifest["libraries"][0]["operators"][0].update(called=False))
    refusal = refused(bundle, *fitting)
    assert refusal.code == "run_failed"
    assert refusal.message.startswith("the model failed on these inputs: ")
    assert "blended::blend" in refusal.message


@pytest.mark.parametrize(
    ("recorded", "code"),
    [
        ("blended::blend(Tensor x, float scale=2., float offset=1.5) -> Tensor", "schema_changed"),
        ("blended::blend(Tensor x, float scale=2., float shift=1.) -> Tensor", "schema_changed"),
        ("blended::blend(Tensor x, float scale=2., *, float offset=1.) -> Tensor", "schema_changed"),
        ("blended::blend(Tensor(a) x, float scale=2., float offset=1.) -> Tensor(a)", "schema_changed"),
        ("blended::blend(Tensor x, float scale=2., float offset=1.) -> (Tensor, Tensor)", "schema_changed"),
        ("blended::blend", "schema_changed"),
        ("blended::blend.out(Tensor x) -> Tensor", "operator_missing"),
        ("blended::blur(Tensor x) -> Tensor", "operator_missing"),
        ("blend", "operator_missing"),
        ("::.(", "operator_missing"),
    ],
)
def test_schemas_are_compared_character_by_character(loads: Loads, bundle: Bundle, recorded: str, code: str) -> None:
    bundle.say(lambda manifest: manifest["libraries"][0].update(operators=[{"schema": recorded, "called": True}]))
    refusal = loads(bundle.path)
    assert refusal.code == code
    assert recorded in refusal.message


def test_two_libraries_with_the_same_namespace_are_refused_before_either_is_opened(
    refused: Refused, bundle: Bundle, compile_library: Callable[..., Path]
) -> None:
    bundle.add_library("lib/second.so", compile_library("int never_opened;").read_bytes())
    refusal = refused(bundle)
    assert refusal.code == "namespace_taken"
    assert refusal.message == (
        f"the namespace blended of lib/second.so is taken: {LIBRARY} of this bundle also defines it. Leave out one of "
        "them"
    )


def test_a_namespace_of_pytorch_is_taken(loads: Loads, bundle: Bundle) -> None:
    bundle.say(lambda manifest: manifest["libraries"][0].update(namespaces=["aten"]))
    refusal = loads(bundle.path)
    assert refusal.code == "namespace_taken"
    assert refusal.message.startswith(f"the namespace aten of {LIBRARY} is taken: this process has aten::")


def test_a_namespace_that_another_bundle_registered_is_taken(loads: Loads, bundle: Bundle) -> None:
    assert loads(bundle.path).code == "loaded"
    bundle.put(LIBRARY, (bundle.path / LIBRARY).read_bytes() + b"another version")
    refusal = loads(bundle.path)
    assert refusal.code == "namespace_taken"
    assert refusal.message.endswith(
        "is taken: this process has blended::blend from another library. Run the bundle in a separate process"
    )


# PyTorch's own macro throws, and the exception passes through dlopen.
PYTORCHS = """
#undef TORCH_TARGET_VERSION
#include <torch/library.h>
TORCH_LIBRARY(blended, m) { m.def("blend(Tensor x) -> Tensor"); }
"""


@pytest.mark.parametrize("source", [Version("double, double").source, PYTORCHS], ids=["opwright's", "PyTorch's own"])
def test_a_manifest_that_hides_a_namespace_is_also_refused(
    refused: Refused, bundle: Bundle, compile_library: Callable[..., Path], source: str
) -> None:
    bundle.add_library("lib/second.so", compile_library(source).read_bytes(), namespaces=["hidden"], operators=[])
    refusal = refused(bundle)
    assert refusal.code == "library_refused"
    assert refusal.message.startswith(f"library {bundle.path}/lib/second.so was refused: ")
    assert "blended" in refusal.message


def test_a_library_that_does_not_load_is_refused(refused: Refused, bundle: Bundle, tmp_path: Path) -> None:
    compile_c(tmp_path / "libmissing.so", "int missing;")
    needs = compile_c(
        tmp_path / "libneeds.so", "extern int missing; int* needs = &missing;", f"-L{tmp_path}", "-lmissing"
    ).read_bytes()
    whole = (bundle.path / LIBRARY).read_bytes()
    for content, why in (
        (needs, "libmissing.so: cannot open shared object file"),
        (b"", "file too short"),
        (b"no library at all" * 100, "invalid ELF header"),
        (whole[: len(whole) // 2], "it is shorter than its header says"),
        (whole[:64], "it is shorter than its header says"),
    ):
        bundle.put(LIBRARY, content)
        refusal = refused(bundle)
        assert refusal.code == "library_refused"
        assert refusal.message.startswith(f"library {bundle.path}/{LIBRARY} does not load: ")
        assert why in refusal.message


def test_the_output_of_a_library_is_shown_after_it_loads_successfully(
    host: Host, bundle: Bundle, tmp_path: Path
) -> None:
    source = '#include <stdio.h>\n__attribute__((constructor)) void speak(void) { fputs("hello\\n", stderr); }'
    speaks = compile_c(tmp_path / "speaks.so", source)
    bundle.add_library("lib/second.so", speaks.read_bytes(), namespaces=["silent"], operators=[])
    done = host(bundle.path, "--verify")
    assert (done.returncode, done.stderr) == (0, "hello\n")


@pytest.mark.parametrize("form", ["bundle", "package"])
def test_a_file_that_is_not_a_model_is_refused(loads: Loads, request: pytest.FixtureRequest, form: str) -> None:
    bundle: Bundle = request.getfixturevalue(form)
    name = bundle.manifest["model"]["file"]
    whole = (bundle.path / name).read_bytes()
    half = whole[: len(whole) // 2]
    for content in (b"", b"no model at all", half, b"PK\3\4" + bytes(1000), whole[:-30] + bytes(30)):
        bundle.put(name, content)
        refusal = loads(bundle.path)
        assert refusal.code == "model_invalid"
        assert refusal.message.startswith(f"model {bundle.path / name} cannot be read: ")
        assert "0x" not in refusal.message, "an address is meaningless to users"


def test_a_model_of_the_other_kind_is_refused(loads: Loads, bundle: Bundle, package: Bundle) -> None:
    bundle.say(lambda manifest: manifest["model"].update(kind="aoti"))
    package.say(lambda manifest: manifest["model"].update(kind="torchscript"))
    for one in (bundle, package):
        refusal = loads(one.path)
        assert refusal.code == "model_invalid"


@pytest.mark.parametrize("form", ["bundle", "package"])
def test_a_model_without_its_library_is_refused(refused: Refused, request: pytest.FixtureRequest, form: str) -> None:
    bundle: Bundle = request.getfixturevalue(form)
    bundle.remove(LIBRARY)
    bundle.say(lambda manifest: manifest["libraries"].clear())
    refusal = refused(bundle)
    assert refusal.code == "operator_missing"
    assert "needs the operator blended::blend, which no library" in refusal.message

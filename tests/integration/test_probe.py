"""The probe: saved models with custom operators in a process without Python, with requests and responses in files."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from opwright.builder.compile import build_plan
from opwright.probe.build import build_probe, probe_plan
from opwright.probe.gradients import gradients
from opwright.probe.run import ProbeRun, run_probe
from tests.interpreter import python

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.integration.conftest import BuildOnce, Dynamic

# An operator that multiplies, and that crashes, exits or throws for some arguments.
OPERATOR = """
#include <opwright/op.h>
#include <torch/csrc/stable/ops.h>

#include <cstdlib>
#include <stdexcept>
#include <thread>

using opwright::Tensor;

Tensor scale(const Tensor& x, double factor) {
    if (x.numel() == 7) throw std::runtime_error("seven is\\nunlucky");
    if (factor == -1 || x.numel() == 13) *static_cast<volatile int*>(nullptr) = 1;
    if (factor == -2) std::thread([] { throw std::runtime_error("an uncaught error"); }).join();
    if (factor == -3) std::exit(0);
    if (factor == -4) throw 4;
    if (factor == -5) throw std::runtime_error("\\xff\\xfe");
    Tensor result = torch::stable::clone(x);
    auto* values = static_cast<float*>(result.data_ptr());
    for (int64_t i = 0; i < result.numel(); ++i) values[i] *= static_cast<float>(factor);
    return result;
}

OPWRIGHT_LIBRARY(hosted, m) { m.def("scale(Tensor x, float factor) -> Tensor"); }
OPWRIGHT_IMPL(hosted, CPU, m) { m.impl("scale", OPWRIGHT_FN(scale)); }
"""
# Prints a line when its constructor runs, and does not use PyTorch.
SPEAKER = """
#include <cstdio>
__attribute__((constructor)) static void speak() {{ std::fputs("{words}\\n", {stream}); std::fflush({stream}); }}
"""
REFUSED = """
extern "C" __attribute__((visibility("default"))) const char* opwright_load_error() { return "it is not supported"; }
"""
THROWING = """
#include <stdexcept>
static const struct Thrown {
    Thrown() { throw std::runtime_error("the namespace is taken"); }
} thrown;
"""
# Run in a separate process, because namespaces stay taken until a process exits.
MODELS = """
import sys
from typing import Dict, List, Optional

import torch
from torch import Tensor

torch.ops.load_library(sys.argv[1])
torch.library.register_fake("hosted::scale", lambda x, factor: torch.empty_like(x))

def scaled(x: Tensor, factor: float) -> Tensor:
    return torch.ops.hosted.scale(x, factor)

def every_kind(
    x: Tensor, xs: List[Tensor], n: int, sizes: List[int], factor: float, factors: List[float], yes: bool, word: str,
    nothing: Optional[Tensor], gaps: List[Optional[Tensor]]
):
    return (x * factor, [tensor + n for tensor in xs]), sizes, factors[0], (yes, word), nothing, gaps

def identity(x: Tensor) -> Tensor:
    return x

def differentiable(x: Tensor, ys: List[Tensor], unused: Tensor, n: int):
    return x.sin() @ ys[0] + ys[1], [(x * n).to(torch.float16), x.argmax()]

def records_gradients(x: Tensor) -> bool:
    return torch.is_grad_enabled()

def without_a_gradient(x: Tensor) -> Tensor:
    return x.detach() * 2

def a_dict(x: Tensor) -> Dict[str, Tensor]:
    return {"x": x}

def sparse(x: Tensor) -> Tensor:
    return x.to_sparse()

class Compiled(torch.nn.Module):
    def forward(self, x: Tensor, factor: float, ys: List[Tensor]) -> Tensor:
        return torch.ops.hosted.scale(x, 3.0) + ys[0] * factor - ys[1]

functions = (
    scaled, every_kind, identity, differentiable, records_gradients, without_a_gradient, a_dict, sparse
)
for function in functions:
    torch.jit.script(function).save(f"{function.__name__}.pt")
arguments = (torch.randn(4), 0.5, [torch.randn(4), torch.randn(4)])
size = torch.export.Dim("size", min=2)
shapes = ({0: size}, None, [{0: size}, {0: size}])
exported = torch.export.export(Compiled(), arguments, dynamic_shapes=shapes)
quickly = {"aot_inductor.precompile_headers": False, "aot_inductor.compile_wrapper_opt_level": "O0"}
torch._inductor.aoti_compile_and_package(exported, package_path="compiled.pt2", inductor_configs=quickly)
"""


@dataclass(frozen=True)
class Probe:
    """The probe without linked libraries, one linked with the operator's library, that library, and the models."""

    plain: Path
    linked: Path
    library: Path
    models: Path


@pytest.fixture(scope="session")
def probe(build_once: BuildOnce, compile_library: Callable[..., Path]) -> Probe:
    def make(folder: Path) -> None:
        compile_library(OPERATOR).rename(folder / "libhosted.so")
        (folder / "make.py").write_text(MODELS)
        subprocess.run([*python(), "make.py", "./libhosted.so"], cwd=folder, check=True)
        (folder / "text_file.pt").write_text("not a model")
        (folder / "text_file.pt2").write_text("not a model")
        (folder / "text_file.so").write_text("not a library")
        (folder / "folder.pt").mkdir(exist_ok=True)
        torch.save([(torch.ones(2), 2.0)], folder / "requests")
        torch.save({"x": torch.ones(2)}, folder / "a_dict")
        torch.save([torch.ones(2)], folder / "no_tuples")

    folder = build_once("probe", make)
    library = folder / "libhosted.so"
    return Probe(build_probe(), build_probe([library]), library, folder)


@pytest.fixture
def call(probe: Probe, tmp_path: Path) -> Callable[..., ProbeRun]:
    """Returns a function that runs one of the models on requests."""

    def call(model: str, *requests: tuple[Any, ...], program: Path = probe.plain, **options: Any) -> ProbeRun:
        return run_probe(program, probe.models / model, requests, work=tmp_path, timeout_s=120, **options)

    return call


def opened_or_linked(probe: Probe, way: str) -> dict[str, Any]:
    return {"libraries": [probe.library]} if way == "opened" else {"program": probe.linked}


@pytest.mark.parametrize("way", ["opened", "linked"])
def test_a_torchscript_model_runs_with_its_library(probe: Probe, call: Callable[..., ProbeRun], way: str) -> None:
    x, y = torch.randn(5), torch.randn(3, 4)
    done = call(
        "scaled.pt", (x, 2.0), (torch.randn(7), 2.0), (x, -4.0), (x, -5.0), (y,), (y, 3), **opened_or_linked(probe, way)
    )
    assert done.error == ""
    assert [response.error for response in done.responses] == [
        "",
        "RuntimeError: seven is",
        "it threw something that is not a std::exception",
        "RuntimeError: \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}",
        done.responses[4].error,
        "",
    ]
    assert "missing value for argument 'factor'" in done.responses[4].error
    assert torch.equal(done.responses[0].outputs[0], x * 2)
    assert torch.equal(done.responses[5].outputs[0], y * 3)
    assert [response.outputs for response in done.responses[1:5]] == [()] * 4
    assert all(response.gradients == () for response in done.responses)
    assert done.python_mapped is False
    assert done.load_seconds > 0
    assert done.median_run_seconds > 0


@pytest.mark.parametrize("way", ["opened", "linked"])
def test_a_compiled_package_receives_only_the_tensors(probe: Probe, call: Callable[..., ProbeRun], way: str) -> None:
    def request(size: int) -> tuple[Any, ...]:
        return torch.randn(size), 99.0, [torch.randn(size), torch.randn(size)]

    requests = [request(4), request(7), (torch.randn(4),), request(9)]
    done = call("compiled.pt2", *requests, **opened_or_linked(probe, way))
    assert done.error == ""
    for at in (0, 3):
        x, _, ys = requests[at]
        torch.testing.assert_close(done.responses[at].outputs, (x * 3 + ys[0] * 0.5 - ys[1],))
        assert done.responses[at].error == ""
    assert done.responses[1].outputs == ()
    assert done.responses[1].error
    assert "expected inputs vector size to be 3, but got 1" in done.responses[2].error
    assert done.python_mapped is False


def test_a_library_is_linked_without_compiling(probe: Probe, dynamic: Dynamic) -> None:
    artefact = build_plan(probe_plan([probe.library]))
    assert (artefact.path, artefact.compiled) == (probe.linked, ())
    assert str(probe.library) in dynamic(probe.linked, "needed")
    assert str(probe.library) not in dynamic(probe.plain, "needed")
    assert not [name for name in dynamic(probe.linked, "needed") if "python" in name]


@pytest.mark.parametrize("way", ["opened", "linked"])
def test_libraries_are_initialized_in_the_given_order(
    call: Callable[..., ProbeRun], compile_library: Callable[..., Path], way: str
) -> None:
    libraries = [compile_library(SPEAKER.format(words=words, stream="stdout")) for words in ("one", "two", "three")]
    given = {"libraries": libraries} if way == "opened" else {"program": build_probe(libraries)}
    assert call("identity.pt", (torch.ones(2),), **given).output.startswith("one\ntwo\nthree\nrequest 0\nanswered\n")


def test_a_linked_library_is_found_by_its_soname(
    call: Callable[..., ProbeRun], compile_library: Callable[..., Path], tmp_path: Path
) -> None:
    speaker = compile_library(SPEAKER.format(words="found", stream="stdout"))
    named = tmp_path / "deep" / "libnamed.so"
    named.parent.mkdir()
    command = ["g++", "-shared", "-Wl,-soname,libnamed.so", "-Wl,--no-as-needed", str(speaker), "-o", str(named)]
    subprocess.run(command, check=True)
    done = call("identity.pt", (torch.ones(2),), program=build_probe([named]))
    assert done.error == ""
    assert done.output.startswith("found\n")


def test_arguments_and_results_of_every_kind_are_transferred(call: Callable[..., ProbeRun]) -> None:
    x, y = torch.randn(2, 3), torch.ones(2)
    typed = (x, [y, y], 2, [3, 4], 2.5, [1.5], True, "w\N{LATIN SMALL LETTER O WITH DIAERESIS}rd", None, [None, y])
    loose: tuple[Any, ...] = (x, (y,), 2, (3,), 2, (1, 2), False, "", y, [])
    empty: tuple[Any, ...] = (x, [], 0, [], 0.0, [1], True, "a", None, [])
    done = call("every_kind.pt", typed, loose, empty)
    assert [response.error for response in done.responses] == [""] * 3
    expected = (
        (x * 2.5, y + 2, y + 2, 3, 4, 1.5, True, typed[7], None, None, y),
        (x * 2, y + 2, 3, 1.0, False, "", y),
        (x * 0, 1.0, True, "a", None),
    )
    for response, wanted in zip(done.responses, expected, strict=True):
        assert [type(value) for value in response.outputs] == [type(value) for value in wanted]
        for value, other in zip(response.outputs, wanted, strict=True):
            assert torch.equal(value, other) if isinstance(other, Tensor) else value == other


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_tensors_keep_their_dtype_layout_and_bits(call: Callable[..., ProbeRun]) -> None:
    whole = torch.arange(24, dtype=torch.int32)
    dtypes = [
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.complex32, torch.complex64, torch.complex128),
    ]
    tensors = [whole.to(dtype).reshape(4, 6)[1:, 1::2].t() for dtype in dtypes]
    tensors += [
        torch.randn(1, 3).expand(4, 3),
        torch.randn(2, 0, 3),
        torch.tensor(torch.nan),
        torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    ]
    done = call("identity.pt", *((tensor,) for tensor in tensors))
    assert len(done.responses) == len(tensors)
    for tensor, response in zip(tensors, done.responses, strict=True):
        (found,) = response.outputs
        assert (found.dtype, found.shape, found.stride()) == (tensor.dtype, tensor.shape, tensor.stride())
        assert found.storage_offset() == tensor.storage_offset()
        assert torch.equal(
            found.contiguous().view(-1).view(torch.uint8), tensor.contiguous().view(-1).view(torch.uint8)
        )


def test_lazy_conjugation_and_negation_are_resolved(call: Callable[..., ProbeRun]) -> None:
    tensors = [torch.randn(3, 2, dtype=torch.complex64).conj(), torch.randn(3, dtype=torch.complex64).conj().imag]
    done = call("identity.pt", *((tensor,) for tensor in tensors))
    assert [torch.equal(r.outputs[0], tensor) for r, tensor in zip(done.responses, tensors, strict=True)] == [
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("a_dict.pt", "the model returned a value of type GenericDict, which cannot be written: return tensors"),
        ("sparse.pt", "the model returned a tensor of type SparseCPUFloatType, which cannot be written: return"),
    ],
)
def test_a_result_that_cannot_be_written_is_an_error_of_its_request(
    call: Callable[..., ProbeRun], model: str, reason: str
) -> None:
    (response,) = call(model, (torch.ones(2),)).responses
    assert response.error.startswith(reason)


def test_gradients_are_bitwise_equal_to_those_in_python(call: Callable[..., ProbeRun]) -> None:
    def differentiable(x: Tensor, ys: Sequence[Tensor], _unused: Tensor, n: int) -> object:
        return x.sin() @ ys[0] + ys[1], [(x * n).to(torch.float16), x.argmax()]

    def leaf(*shape: int) -> Tensor:
        return torch.randn(*shape).requires_grad_()

    every = (leaf(4, 3).detach().t().requires_grad_(), [leaf(4, 5), leaf(5)], leaf(2), 3)
    one = (torch.randn(2, 4), (leaf(4, 5), torch.randn(5)), torch.randn(2), 3)
    none = (torch.randn(2, 4), [torch.randn(4, 5), torch.randn(5)], torch.randn(2), 3)
    wrong = (leaf(2, 2), [leaf(3, 3), leaf(3)], leaf(2), 3)
    requests = (every, one, none, wrong)
    done = call("differentiable.pt", *requests, backward=True)
    assert [len(response.gradients) for response in done.responses] == [4, 1, 0, 0]
    for request, response in zip(requests[:3], done.responses, strict=False):
        expected = gradients(differentiable(*request), request)
        for found, wanted in zip(response.gradients, expected, strict=True):
            if wanted is None:
                assert found is None
            else:
                assert found is not None
                assert torch.equal(found, wanted)
    assert done.responses[0].gradients[3] is None
    assert done.responses[3].error
    assert not done.responses[0].outputs[0].requires_grad

    assert [response.gradients for response in call("differentiable.pt", every).responses] == [()]


@pytest.mark.parametrize("backward", [True, False])
def test_gradients_are_recorded_only_if_requested(call: Callable[..., ProbeRun], backward: bool) -> None:
    (response,) = call("records_gradients.pt", (torch.ones(2),), backward=backward).responses
    assert response.outputs == (backward,)


def test_outputs_without_a_gradient_return_none(call: Callable[..., ProbeRun]) -> None:
    (response,) = call("without_a_gradient.pt", (torch.ones(2, requires_grad=True),), backward=True).responses
    assert (response.error, response.gradients) == ("", (None,))


@pytest.mark.parametrize(
    ("factor", "signal", "error"),
    [
        (-1.0, "SIGSEGV", "the probe was terminated in request 1 by SIGSEGV"),
        (-2.0, "SIGABRT", "the probe was terminated in request 1 by SIGABRT: an uncaught error"),
        (-3.0, "", "the probe exited in request 1 with status 0"),
    ],
)
def test_a_request_that_ends_the_probe_is_named(
    probe: Probe, call: Callable[..., ProbeRun], factor: float, signal: str, error: str
) -> None:
    x = torch.ones(2)
    done = call("scaled.pt", (x, 2.0), (x, factor), (x, 2.0), libraries=[probe.library])
    assert (done.request, done.signal, done.error) == (1, signal, error)
    assert done.responses == ()


def test_a_package_that_crashes_leaves_no_files_behind(
    probe: Probe, call: Callable[..., ProbeRun], tmp_path: Path
) -> None:
    done = call("compiled.pt2", (torch.ones(13), torch.ones(13), torch.ones(13)), libraries=[probe.library])
    assert (done.request, done.signal) == (0, "SIGSEGV")
    assert [path.name for path in tmp_path.iterdir()] == ["requests.pt"]


def test_no_python_is_mapped_and_the_test_would_detect_it(call: Callable[..., ProbeRun], libpython: Path) -> None:
    assert call("identity.pt", (torch.ones(2),)).python_mapped is False
    for stand_in in (libpython, Path(shutil.copy(libpython, libpython.with_name("libtorch_python.so")))):
        assert call("identity.pt", (torch.ones(2),), libraries=[stand_in]).python_mapped is True
        assert call("identity.pt", (torch.ones(2),), env={"LD_PRELOAD": str(stand_in)}).python_mapped is True


def test_the_output_of_a_library_while_it_is_opened_is_kept(
    call: Callable[..., ProbeRun], compile_library: Callable[..., Path]
) -> None:
    library = compile_library(SPEAKER.format(words="a warning", stream="stderr"))
    assert call("identity.pt", (torch.ones(2),), libraries=[library]).output.startswith("a warning\n")


@pytest.mark.parametrize(("source", "reason"), [(REFUSED, "it is not supported"), (THROWING, "the namespace is taken")])
def test_the_only_output_for_a_rejected_library_is_its_name_and_the_reason(
    call: Callable[..., ProbeRun], compile_library: Callable[..., Path], source: str, reason: str
) -> None:
    library = compile_library(SPEAKER.format(words="noise", stream="stderr"), source)
    done = call("identity.pt", (torch.ones(2),), libraries=[library])
    assert done.error == f"library {library} was refused: {reason}"
    assert done.output == f"probe: {done.error}\n"


def test_a_rejected_linked_library_is_named_with_the_reason(
    call: Callable[..., ProbeRun], compile_library: Callable[..., Path]
) -> None:
    library = compile_library(REFUSED)
    done = call("identity.pt", (torch.ones(2),), program=build_probe([library]))
    assert done.error == f"library {library} was refused: it is not supported"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        ("", 2, "usage: probe "),
        ("scaled.pt requests", 2, "usage: probe "),
        ("scaled.pt requests out --fast", 2, "'--fast' is unknown or lacks its value; usage: probe "),
        ("compiled.pt2 requests out --backward", 2, r"compiled\.pt2 is compiled and has no gradients: omit"),
        ("nowhere.pt requests out", 24, r"model nowhere\.pt does not exist$"),
        ("nowhere.pt2 requests out", 24, r"model nowhere\.pt2 does not exist$"),
        ("folder.pt requests out", 24, r"model folder\.pt is a folder$"),
        ("identity.pt nowhere out", 24, "requests nowhere does not exist$"),
        ("identity.pt requests out --library nowhere.so", 24, r"library nowhere\.so does not exist$"),
        ("text_file.pt requests out", 35, r"model text_file\.pt cannot be read: .*not a ZIP archive"),
        ("text_file.pt2 requests out", 35, r"model text_file\.pt2 cannot be read: .*not a ZIP archive"),
        ("scaled.pt requests out", 33, r"model scaled\.pt needs the operator hosted::scale, .*: pass its library"),
        ("compiled.pt2 requests out", 33, r"model compiled\.pt2 needs the operator hosted::scale, which no library"),
        ("identity.pt text_file.pt out", 36, r"requests text_file\.pt cannot be read: .*not a ZIP archive"),
        ("identity.pt a_dict out", 36, "requests a_dict are of type GenericDict; expected a list with one tuple"),
        ("identity.pt no_tuples out", 36, "requests no_tuples contain a call of type Tensor; expected a list with one"),
        (
            "identity.pt requests out --library text_file.so",
            31,
            r"library text_file\.so does not load: .*file too short",
        ),
        ("identity.pt requests nowhere/out", 44, "responses nowhere/out cannot be written$"),
        ("identity.pt requests folder.pt", 44, r"responses folder\.pt cannot be written$"),
    ],
)
def test_an_error_that_prevents_a_run_is_one_line_and_an_exit_code(
    probe: Probe, arguments: str, exit_code: int, message: str
) -> None:
    before = sorted(probe.models.rglob("*"))
    done = subprocess.run(
        [probe.plain, *arguments.split()], cwd=probe.models, check=False, capture_output=True, text=True
    )
    (line,) = done.stderr.splitlines()
    assert re.match(f"probe: .*{message}", line), line
    assert done.returncode == exit_code
    assert sorted(probe.models.rglob("*")) == before


def test_help_is_not_a_failure(probe: Probe) -> None:
    done = subprocess.run([probe.plain, "--help"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: probe ")

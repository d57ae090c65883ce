"""Correct kernels that compute differently than their references: the search finds no fault for any seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from opwright.checker.behavior.results import check_results
from opwright.checker.recorder import Recorder

if TYPE_CHECKING:
    from tests.unit.checker.conftest import MakeSubject

# Each reference defines the operator, and each kernel rejects what it does not support, like a native one.
HEAD = """
def refuse(wrong):
    if wrong:
        raise ValueError("not supported")

def refuse_dtypes(*tensors, dtypes=(torch.float32, torch.float64)):
    refuse(any(one.dtype not in dtypes or one.dtype != tensors[0].dtype or one.is_meta for one in tensors))
"""
OPERATORS = {
    "softmax, the maximum subtracted first": """
@library.op
def f(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)

def kernel(x):
    refuse(not x.is_floating_point() or x.dim() == 0 or x.numel() == 0)
    m = x.amax(-1, keepdim=True)
    e = (x.float() if x.dtype in (torch.float16, torch.bfloat16) else x).sub(m).exp()
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)

@f.samples
def _(make):
    yield make.randn(make.size(6), make.size(11))
""",
    "layer norm in two passes": """
@library.op
def f(x: Tensor, w: Tensor, b: Tensor, eps: float = 1e-5) -> Tensor:
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), w, b, eps)

def kernel(x, w, b, eps):
    refuse(x.dim() == 0 or x.shape[-1:] != w.shape or w.shape != b.shape or w.shape[0] == 0)
    refuse_dtypes(x, w, b)
    m = x.mean(-1, keepdim=True)
    v = ((x - m) ** 2).mean(-1, keepdim=True)
    return ((x - m) / torch.sqrt(v + eps) * w + b).contiguous()

@f.samples
def _(make):
    d = make.size(13)
    yield make.randn(make.size(5), d), make.randn(d), make.randn(d)
""",
    "variance by Welford's recurrence": """
@library.op
def f(x: Tensor) -> Tensor:
    return torch.var(x, -1, correction=0)

def kernel(x):
    refuse_dtypes(x)
    refuse(x.dim() == 0 or not 0 < x.shape[-1] <= 4096)
    mean = torch.zeros(x.shape[:-1], dtype=x.dtype)
    m2 = torch.zeros_like(mean)
    for i in range(x.shape[-1]):
        d = x[..., i] - mean
        mean = mean + d / (i + 1)
        m2 = m2 + d * (x[..., i] - mean)
    return m2 / x.shape[-1]

@f.samples
def _(make):
    yield make.randn(make.size(4), make.size(9))
""",
    "rows gathered, negative indices refused": """
@library.op
def f(x: Tensor, index: Tensor) -> Tensor:
    refuse(index.dtype != torch.int64 or bool((index < 0).any()))
    return x[index]

def kernel(x, index):
    refuse_dtypes(index, dtypes=(torch.int64,))
    refuse(x.is_meta or x.dim() == 0)
    refuse(bool(((index < 0) | (index >= x.shape[0])).any()))
    return torch.index_select(x, 0, index.flatten()).reshape(*index.shape, *x.shape[1:]).clone()

@f.samples
def _(make):
    n = make.size(12)
    yield make.randn(n, 5), make.randint(0, max(n, 1), 7)
""",
    "the first of equal maxima": """
@library.op
def f(x: Tensor) -> Tensor:
    return torch.argmax(x, -1)

def kernel(x):
    refuse(x.dim() == 0 or not 0 < x.shape[-1] <= 4096 or x.is_complex())
    best, at = x[..., 0].clone(), torch.zeros(x.shape[:-1], dtype=torch.int64)
    for i in range(1, x.shape[-1]):
        y = x[..., i]
        better = (y > best) | (y.isnan() & ~best.isnan())
        best, at = torch.where(better, y, best), torch.where(better, i, at)
    return at

@f.samples
def _(make):
    yield make.randn(make.size(5), make.size(9))
""",
    "a matrix product in blocks": """
@library.op
def f(x: Tensor, y: Tensor) -> Tensor:
    return x @ y

def kernel(x, y):
    refuse(x.dim() != 2 or y.dim() != 2 or x.shape[1] != y.shape[0])
    refuse_dtypes(x, y)
    out = torch.zeros(x.shape[0], y.shape[1], dtype=x.dtype)
    for k in range(0, x.shape[1], 4):
        out += x[:, k:k+4] @ y[k:k+4]
    return out

@f.samples
def _(make):
    k = make.size(9)
    yield make.randn(make.size(6), k), make.randn(k, make.size(7))
""",
    "arithmetic of 64-bit integers": """
@library.op
def f(x: Tensor, y: Tensor, shift: int = 1) -> Tensor:
    return x * y + shift

def kernel(x, y, shift):
    refuse_dtypes(x, y, dtypes=(torch.int64,))
    refuse(x.shape != y.shape)
    return torch.add(torch.mul(y, x), shift).contiguous()

@f.samples
def _(make):
    yield make.randint(0, 100, 13), make.randint(0, 100, 13)
""",
    "a mask whose true bytes are any": """
@library.op
def f(x: Tensor, mask: Tensor, fill: float = 0.0) -> Tensor:
    if mask.dtype != torch.bool: raise ValueError("mask")
    return x.masked_fill(mask, fill)

def kernel(x, mask, fill):
    refuse_dtypes(x)
    refuse_dtypes(mask, dtypes=(torch.bool,))
    refuse(x.shape != mask.shape)
    clean = mask.view(torch.uint8) != 0
    return torch.where(clean, torch.tensor(fill, dtype=x.dtype), x).contiguous()

@f.samples
def _(make):
    yield make.randn(make.size(6), 7), make.randint(0, 2, make.size(6), 7).bool()
""",
    "GELU by the complementary error function": """
@library.op
def f(x: Tensor, approximate: str = "none") -> Tensor:
    return torch.nn.functional.gelu(x, approximate=approximate)

def kernel(x, approximate):
    refuse_dtypes(x)
    refuse(approximate not in ("none", "tanh"))
    if approximate == "none":
        return (0.5 * x * torch.erfc(-x * 0.7071067811865476)).contiguous()
    return (0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))).contiguous()

@f.samples
def _(make):
    yield make.randn(make.size(30))
    yield make.randn(make.size(30)), "tanh"
""",
    "log-sum-exp over any dimensions": """
@library.op
def f(x: Tensor, dims: list[int], keepdim: bool = False) -> Tensor:
    return torch.logsumexp(x, dims, keepdim)

def kernel(x, dims, keepdim):
    refuse_dtypes(x)
    refuse(x.numel() == 0 or x.dim() == 0 or not dims or not all(-x.dim() <= dim < x.dim() for dim in dims))
    d = [i % x.dim() for i in dims]
    refuse(len(set(d)) != len(d))
    m = x.amax(d, keepdim=True)
    m0 = torch.where(m.isfinite(), m, torch.zeros((), dtype=x.dtype))
    r = (x - m0).exp().sum(d, keepdim=True).log() + m0
    return r if keepdim else r.squeeze(d).clone()

@f.samples
def _(make):
    yield make.randn(make.size(4), make.size(5), 6), [1]
    yield make.randn(make.size(4), make.size(5), 6), [0, -1], True
""",
    "a running sum": """
@library.op
def f(x: Tensor, dim: int = -1) -> Tensor:
    return torch.cumsum(x, dim)

def kernel(x, dim):
    refuse_dtypes(x)
    refuse(not -x.dim() <= dim < x.dim() or not 0 < x.shape[dim] <= 4096)
    total, sums = torch.zeros_like(x.select(dim, 0)), torch.empty(x.shape, dtype=x.dtype)
    for i in range(x.shape[dim]):
        total = total + x.select(dim, i)
        sums.select(dim, i).copy_(total)
    return sums

@f.samples
def _(make):
    yield make.randn(make.size(5), make.size(9))
    yield make.randn(make.size(5), make.size(9)), 0
""",
    "limits that may be left out": """
@library.op
def f(x: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
    refuse(low is None and high is None)
    return torch.clamp(x, low, high)

def kernel(x, low, high):
    refuse_dtypes(x)
    refuse(low is None and high is None)
    y = x.clone(memory_format=torch.contiguous_format)
    if low is not None:
        y = torch.where(y < low, torch.tensor(low, dtype=x.dtype), y)
    if high is not None:
        y = torch.where(y > high, torch.tensor(high, dtype=x.dtype), y)
    return y

@f.samples
def _(make):
    yield make.randn(make.size(21)), -0.5, 0.5
    yield make.randn(make.size(21)), 0.0
""",
}


def assert_right(make_subject: MakeSubject, text: str, seed: int, *, quick: bool) -> None:
    subject = make_subject(HEAD + text, quick=quick, seed=seed)
    subject.__dict__["overload"] = subject.op.reference.__globals__["kernel"]
    recorder = Recorder("f", "eager", "cpu", lambda event: None)
    for cases in (subject.samples, subject.varied, subject.pairs()):
        check_results(subject, recorder, cases)
    cell = recorder.cell()
    assert [(failure.kind, failure.case, failure.got) for failure in cell.failures] == []
    assert cell.cases > cell.rejected + 50


@pytest.mark.sample(4)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", OPERATORS)
def test_a_correct_operator_passes_a_quick_search(make_subject: MakeSubject, name: str, seed: int) -> None:
    assert_right(make_subject, OPERATORS[name], seed, quick=True)


@pytest.mark.sample(1)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", OPERATORS)
def test_a_correct_operator_passes_a_full_search(make_subject: MakeSubject, name: str) -> None:
    assert_right(make_subject, OPERATORS[name], 3, quick=False)

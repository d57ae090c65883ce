"""An op.py that only names parts of PyTorch is described without importing it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import json, sys
from pathlib import Path
from opwright.spec import library_at
from opwright.spec.stand_in import describe_without_pytorch

root = Path(sys.argv[1])

def describe():
    library = library_at(root)
    return library.schemas(), [[op.parameters, op.results] for op in library.ops.values()]

schemas, parts = describe_without_pytorch(root, describe)
imported = "torch" in sys.modules
import torch
again = [[op.parameters, op.results] for op in library_at(root).ops.values()]
assert parts == again, (parts, again)
print(json.dumps([schemas, imported]))
"""
HEAD = """
import opwright
import torch
from torch import Tensor
library = opwright.Library("mine")
"""
OP = """
@library.op
def f(x: Tensor) -> Tensor:
    return x
"""


def described(folder: Path, text: str, program: str = PROGRAM) -> tuple[list[str], bool]:
    """The schemas of the op.py, and whether PyTorch was imported for them."""
    (folder / "op.py").write_text(text)
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    schemas, imported = json.loads(done.stdout.splitlines()[-1])
    return schemas, imported


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text",
    [
        OP,
        "from __future__ import annotations\n" + HEAD + OP,
        "from torch.nn.functional import silu\nimport torch.nn.functional as F\nACT = F.relu\n" + OP,
        "\n@library.op\ndef f(x: 'Tensor', dtype: torch.dtype = None) -> list[Tensor]:\n    return [x]\n",
        OP
        + "\nf.backward()\n\n@f.samples(dtypes=(torch.float64, torch.half))\ndef _(make):\n    yield make.randn(3),\n",
        "\n@library.op(tolerance={torch.bfloat16: 1e-2})\ndef f(x: torch.Tensor) -> torch.Tensor:\n    return x\n",
        "\ntry:\n    import triton_that_is_not_there\nexcept ImportError:\n    pass\n" + OP,
    ],
)
def test_naming_parts_of_pytorch_imports_nothing(tmp_path: Path, text: str) -> None:
    text = text if "import opwright" in text else HEAD + text
    schemas, imported = described(tmp_path, text)
    assert schemas[0].startswith("f(Tensor x")
    assert not imported


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "text",
    [
        "\nCUDA = torch.cuda.is_available()\n" + OP,
        "\nONE = torch.ones(1)\n" + OP,
        "\nEPS = torch.finfo(torch.float32).eps\n" + OP,
        "\nassert torch.version.cuda is None or torch.version.cuda\n" + OP,
        "\nclass Mine(torch.Tensor):\n    pass\n" + OP,
        "\nassert isinstance(torch.float32, torch.dtype)\n" + OP,
        "\nassert torch.float32.itemsize == 4\n" + OP,
        "\nimport torch.utils.cpp_extension\n" + OP,
        "\nassert torch.__version__ >= '2'\n" + OP,
        "\ntry:\n    N = torch.get_num_threads()\nexcept:\n    N = 0\nassert N > 0\n" + OP,
        "\nfrom torch.nn.functional import silu\nassert silu.__name__ == 'silu'\n" + OP,
        "\nimport pathlib\nassert pathlib.Path(torch.__file__).is_file()\n" + OP,
        "\nfrom torch import *\nassert ones(1)\n" + OP,
        "\nfrom torch import nn\nclass Net(nn.Module):\n    pass\n" + OP,
        "\n@library.op\ndef f(x: Tensor, n: torch.types.Number) -> Tensor:\n    return x\n",
        "\n@library.op\ndef f(x: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:\n    return x\n",
        "\ntry:\n    N = torch.get_num_threads()\nexcept Exception:\n    N = 0\nassert N > 0\n" + OP,
    ],
)
def test_using_pytorch_imports_it_and_runs_op_py_again(tmp_path: Path, text: str) -> None:
    schemas, imported = described(tmp_path, HEAD + text)
    assert schemas[0].startswith("f(Tensor x")
    assert imported


def test_a_module_of_the_folder_gets_pytorch_itself_afterwards(tmp_path: Path) -> None:
    (tmp_path / "formulas.py").write_text("import torch\nfrom torch.nn.functional import silu\n")
    text = HEAD + OP.replace("return x", "import formulas\n    return formulas.silu(x)")
    text = "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parent))\nimport formulas\n" + text
    program = PROGRAM + "assert library_at(root).ops['f'](torch.zeros(2)).tolist() == [0, 0]\n"
    _, imported = described(tmp_path, text, program)
    assert not imported


def test_a_module_from_elsewhere_gets_pytorch_itself(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "reads_torch.py").write_text("import torch\nTHREADS = torch.get_num_threads\n")
    (elsewhere / "holds_torch.py").write_text("import torch\ndef ones():\n    return torch.ones(2)\n")
    head = f"import sys\nsys.path.insert(0, {str(elsewhere)!r})\n"
    folder = tmp_path / "mine"
    folder.mkdir()
    assert described(folder, head + "import reads_torch\n" + HEAD + OP)[1]
    program = PROGRAM + "import holds_torch\nassert holds_torch.ones().tolist() == [1, 1]\n"
    assert not described(folder, head + "import holds_torch\n" + HEAD + OP, program)[1]

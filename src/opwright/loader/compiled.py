"""Has torch.compile compile again what calls operators that were replaced."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

from torch.compiler import config

_MARK = " opwright "
# The contents of the libraries that were replaced, by their names.
_contents: dict[str, str] = {}


def forget_compiled(name: str, content: str) -> None:
    """Compile again: what is compiled holds the dtypes and strides that the former fake kernels gave.

    Inductor's caches, on the disk too, know the operators of a graph by name alone. Their keys get what was replaced.

    Args:
        name: the library.
        content: what tells its state from others.
    """
    _contents[name] = content
    digest = hashlib.sha256(repr(sorted(_contents.items())).encode()).hexdigest()[:16]
    config.cache_key_tag = config.cache_key_tag.partition(_MARK)[0] + _MARK + digest
    dynamo: Any = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()

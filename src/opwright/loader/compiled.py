"""Makes torch.compile recompile code that calls replaced operators."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

from torch.compiler import config

_MARK = " opwright "
# The contents of replaced libraries, by name.
_contents: dict[str, str] = {}


def forget_compiled(name: str, content: str) -> None:
    """Discard compiled code, which depends on the dtypes and strides that the replaced fake kernels returned.

    Inductor's caches, including the one on disk, identify the operators of a graph only by name, so the replaced
    contents become part of their keys.

    Args:
        name: the library.
        content: identifies the state of the library.
    """
    _contents[name] = content
    digest = hashlib.sha256(repr(sorted(_contents.items())).encode()).hexdigest()[:16]
    config.cache_key_tag = config.cache_key_tag.partition(_MARK)[0] + _MARK + digest
    dynamo: Any = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()

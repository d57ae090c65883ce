"""The names of the eleven runtimes, for those who must not import torch to list them."""

from __future__ import annotations

RUNTIMES = (
    *("eager", "autograd", "compile", "vmap", "trace", "script"),
    *("export", "aoti", "host-linked", "host-script", "host-aoti"),
)

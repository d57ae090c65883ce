"""The target of a check: a library, and its shared object, which is built for the check."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opwright.builder.compile import build_plan
from opwright.builder.plan import plan_library
from opwright.cache.cache import Cache
from opwright.checker import sanitize as sanitizers
from opwright.errors import BridgeError
from opwright.loader.bridge import build_bridge
from opwright.report.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from opwright.spec import Library


@dataclass(frozen=True)
class Target:
    """The target of a check.

    Attributes:
        namespace: the library's namespace.
        path: its op.py.
        shared_object: its shared object; None if it has no native source.
        sanitize: the sanitizers that it was built with.
        is_external: whether the library is external.
        step_limit_s: a step that takes longer is a hang; by default, the limit of the runtime.
    """

    namespace: str
    path: Path
    shared_object: Path | None
    sanitize: tuple[str, ...] = ()
    is_external: bool = False
    step_limit_s: float | None = None


def build_checked(library: Library, sanitize: tuple[str, ...] = ()) -> Path | None:
    """Build the library, instrumented if requested; None if it has no native source.

    Raises:
        OpwrightError: as for `opwright.build`.
    """
    library.schemas()  # first, so that an annotation without a schema type is reported before anything is built
    if not library.sources:
        return None
    cache = Cache()
    plan = plan_library(library, cache)
    if sanitize:
        plan = sanitizers.instrumented(plan, sanitize)
    if any(op.gradient is not None for op in library.ops.values()):
        # Built here, because in a process under a sanitizer, the compiler would run under it too. If the build fails,
        # those processes report it.
        with contextlib.suppress(BridgeError):
            build_bridge()
    return build_plan(plan, cache=cache, progress=Progress(library.namespace)).path

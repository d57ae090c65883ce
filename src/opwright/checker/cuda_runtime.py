"""The CUDA runtime in this process, which stores the error of a launch until it is read."""

from __future__ import annotations

import ctypes
import functools

from opwright.checker.shared_objects import open_shared_objects, opened_and_closed


class CudaRuntime:
    """The CUDA runtimes that are open in this process: PyTorch's, and one of another version that an operator links.

    Each stores the last error of each thread. The errors of a runtime that an operator links statically are not
    accessible.
    """

    def take_error(self) -> str:
        """The name and the text of the last error of this thread, which is cleared; empty if there is none."""
        found = ""
        for runtime in _runtimes(opened_and_closed()):
            code = runtime.cudaGetLastError()  # it also clears the error
            if code and not found:
                name, text = runtime.cudaGetErrorName(code), runtime.cudaGetErrorString(code)
                found = f"{name.decode()}, {text.decode()}"
        return found


@functools.lru_cache(maxsize=1)
def _runtimes(_counts: tuple[int, int]) -> list[ctypes.CDLL]:
    """The open runtimes; searched again after a library was opened or closed."""
    found = list(open_shared_objects("libcudart"))
    for runtime in found:
        for name in ("cudaGetErrorName", "cudaGetErrorString"):
            getattr(runtime, name).restype = ctypes.c_char_p
    return found

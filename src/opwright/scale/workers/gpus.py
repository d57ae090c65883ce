"""The GPUs of this machine that a host may use, queried from the driver because workers have no PyTorch."""

from __future__ import annotations

import ctypes
import os

VARIABLE = "CUDA_VISIBLE_DEVICES"
_DRIVER = "libcuda.so.1"


def gpus(driver: str = _DRIVER) -> tuple[str, ...]:
    """The names of the GPUs, in the format of the environment variable CUDA_VISIBLE_DEVICES; empty without a driver.

    Args:
        driver: the library of the driver.
    """
    count = _count(driver)
    named = [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]
    return tuple(named[:count]) if named else tuple(map(str, range(count)))


def _count(driver: str) -> int:
    """The number of GPUs; the driver respects the variable."""
    count = ctypes.c_int(0)
    try:
        cuda = ctypes.CDLL(driver)
        if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
            return 0
    except (OSError, AttributeError):
        return 0
    return count.value

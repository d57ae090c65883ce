"""The GPUs of this machine that a host may use, from the driver: a worker has no PyTorch to ask."""

from __future__ import annotations

import ctypes
import os

VARIABLE = "CUDA_VISIBLE_DEVICES"
_DRIVER = "libcuda.so.1"


def gpus(driver: str = _DRIVER) -> tuple[str, ...]:
    """The names of the GPUs, as the environment variable CUDA_VISIBLE_DEVICES has them; none without a driver.

    Args:
        driver: the library of the driver.
    """
    count = _count(driver)
    named = [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]
    return tuple(named[:count]) if named else tuple(map(str, range(count)))


def _count(driver: str) -> int:
    """How many there are; the driver leaves out what the variable leaves out."""
    count = ctypes.c_int(0)
    try:
        cuda = ctypes.CDLL(driver)
        if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)):
            return 0
    except (OSError, AttributeError):
        return 0
    return count.value

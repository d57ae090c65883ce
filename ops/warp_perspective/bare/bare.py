"""OpenCV's own warpPerspective, without PyTorch, through ctypes: the oracle in tests and the baseline in benchmarks."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

import opwright

if TYPE_CHECKING:
    from collections.abc import Sequence

# The values of cv::InterpolationFlags, cv::BorderTypes and the CV_ depths.
INTERPOLATIONS = {"nearest": 0, "linear": 1, "cubic": 2, "lanczos": 4}
BORDER_MODES = {"constant": 0, "replicate": 1, "reflect": 2, "wrap": 3, "reflect_101": 4}
DEPTHS = {torch.uint8: 0, torch.uint16: 2, torch.int16: 3, torch.float32: 5, torch.float64: 6}
WARP_INVERSE_MAP = 16
SCALAR_SIZE = 4


class Image(ctypes.Structure):
    """`BareImage` of bare.cpp: OpenCV's description of a (H, W) or (H, W, C) tensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("rows", ctypes.c_int),
        ("cols", ctypes.c_int),
        ("type", ctypes.c_int),
        ("step", ctypes.c_size_t),
    )


def warp_perspective(
    image: Tensor,
    warp: Tensor,
    height: int,
    width: int,
    interpolation: str = "linear",
    inverse_map: bool = False,
    border_mode: str = "constant",
    border_value: Sequence[float] | None = None,
) -> Tensor:
    """Warp one image, (H, W) or (H, W, C), by one (3, 3) warp with OpenCV.

    The arguments are the operator's, but only OpenCV checks them.
    """
    output = image.new_empty((height, width, *image.shape[2:]))
    _call(image, warp, output, interpolation, inverse_map, border_mode, border_value, None)
    return output


def time_warp_perspective(
    image: Tensor, warp: Tensor, output: Tensor, repeats: int, interpolation: str = "linear"
) -> list[float]:
    """The duration in seconds of each of `repeats` calls that write to the memory of `output`, measured in C++."""
    seconds = (ctypes.c_double * repeats)()
    _call(image, warp, output, interpolation, False, "constant", None, seconds)
    return list(seconds)


def _call(
    image: Tensor,
    warp: Tensor,
    output: Tensor,
    interpolation: str,
    inverse_map: bool,
    border_mode: str,
    border_value: Sequence[float] | None,
    seconds: ctypes.Array[ctypes.c_double] | None,
) -> None:
    source = image.contiguous()
    border = list(border_value or (0.0,))
    border = (border * SCALAR_SIZE)[:SCALAR_SIZE] if len(border) == 1 else border + [0.0] * (SCALAR_SIZE - len(border))
    failure = _library().bare_warp_perspective(
        ctypes.byref(_image(source)),
        ctypes.byref(_image(output)),
        (ctypes.c_double * 9)(*warp.double().flatten().tolist()),
        INTERPOLATIONS[interpolation] | (WARP_INVERSE_MAP if inverse_map else 0),
        BORDER_MODES[border_mode],
        (ctypes.c_double * SCALAR_SIZE)(*border),
        1 if seconds is None else len(seconds),
        seconds,
    )
    if failure is not None:
        raise RuntimeError(failure.decode())


def _image(tensor: Tensor) -> Image:
    rows, cols, channels = (*tensor.shape, 1)[:3]
    depth = DEPTHS[tensor.dtype]
    step = tensor.stride(0) * tensor.element_size()
    return Image(tensor.data_ptr(), rows, cols, depth + 8 * (channels - 1), step)


@cache
def _library() -> ctypes.CDLL:
    source = Path(__file__).with_name("bare.cpp")
    library = ctypes.CDLL(str(opwright.load("opencv_bare", [source], packages=["opencv4"], is_python_module=False)))
    library.bare_warp_perspective.restype = ctypes.c_char_p
    library.bare_warp_perspective.argtypes = [
        ctypes.POINTER(Image),
        ctypes.POINTER(Image),
        ctypes.POINTER(ctypes.c_double),
        ctypes.c_int,
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_double),
        ctypes.c_int,
        ctypes.POINTER(ctypes.c_double),
    ]
    return library

"""The machine and the PyTorch that a bench ran on."""

from __future__ import annotations

import datetime as dt
import os
import re
from dataclasses import dataclass
from pathlib import Path

import torch

from opwright.bencher.gpu_state import GpuState, gpu_state
from opwright.toolchain.machine import Machine, this_machine

# These change the number of threads or where they run, without changing PyTorch's settings.
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES", "KMP_AFFINITY", "GOMP_CPU_AFFINITY")
_DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True)
class Gpu:
    """A GPU.

    Attributes:
        name: the model.
        compute_capability: such as `9.0`.
        multiprocessors: their number.
        memory_bytes: its memory.
    """

    name: str
    compute_capability: str
    multiprocessors: int
    memory_bytes: int

    def __str__(self) -> str:
        return f"{self.name}, compute capability {self.compute_capability}, {self.memory_bytes / 2**30:.0f} GiB"


@dataclass(frozen=True)
class MachineRecord:
    """A machine and its PyTorch.

    Attributes:
        machine: the processor, its memory, Python.
        gpus: the GPUs that PyTorch can use.
        driver: the version of the GPU driver; empty without a GPU.
        pytorch: PyTorch's version.
        cuda: the CUDA version of the PyTorch build; empty for a CPU build.
        kernels: the instruction set that PyTorch's own kernels use.
        libraries: the math and threading libraries of PyTorch, with their versions.
        environment: the environment variables that are set and change how threads run.
        date: the date, in UTC.
        gpu_state: the clocks of the GPU and what throttles them; None without a GPU, or if unknown.
    """

    machine: Machine
    gpus: tuple[Gpu, ...]
    driver: str
    pytorch: str
    cuda: str
    kernels: str
    libraries: tuple[str, ...]
    environment: dict[str, str]
    date: str
    gpu_state: GpuState | None = None

    def facts(self) -> dict[str, str]:
        """The record as text for a report; a fact that does not apply is empty."""
        built = f"CUDA {self.cuda}" if self.cuda else "CPU"
        return {
            "machine": str(self.machine),
            "instruction sets": ", ".join(self.machine.instruction_sets),
            "GPU": "; ".join(map(str, self.gpus)) + (f"; driver {self.driver}" if self.driver else ""),
            "GPU clocks": "" if self.gpu_state is None else str(self.gpu_state),
            "PyTorch": f"{self.pytorch} ({built} build), {self.kernels} kernels",
            "math libraries": ", ".join(self.libraries),
            "environment": ", ".join(f"{name}={value}" for name, value in self.environment.items()),
            "date": self.date,
        }


def machine_record() -> MachineRecord:
    """The machine that this process runs on."""
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    return MachineRecord(
        machine=this_machine(),
        gpus=tuple(map(_gpu, gpus)),
        driver=_driver() if gpus else "",
        pytorch=torch.__version__,
        cuda=torch.version.cuda or "",
        kernels=torch.backends.cpu.get_cpu_capability(),
        libraries=_libraries(torch.__config__.show()),
        environment={name: os.environ[name] for name in _VARIABLES if name in os.environ},
        date=dt.datetime.now(dt.timezone.utc).date().isoformat(),
        gpu_state=gpu_state() if gpus else None,
    )


def _gpu(index: int) -> Gpu:
    found = torch.cuda.get_device_properties(index)
    return Gpu(found.name, f"{found.major}.{found.minor}", found.multi_processor_count, found.total_memory)


def _driver() -> str:
    """The driver's version, from its kernel module: PyTorch reports only the CUDA version that it supports."""
    found = re.search(r"Kernel Module\D.*?\s(\d+(?:\.\d+)+)\s", _DRIVER.read_text()) if _DRIVER.is_file() else None
    return found[1] if found else ""


def _libraries(config: str) -> tuple[str, ...]:
    """The libraries that `torch.__config__.show()` lists."""
    names = {
        "MKL": r"Math Kernel Library Version ([\w.]+)",
        "oneDNN": r"(?:MKL-DNN|oneDNN) v([\w.]+)",
        "OpenMP": r"OpenMP (\d+)",
        "cuDNN": r"CuDNN ([\w.]+)",
    }
    return tuple(f"{name} {found[1]}" for name, pattern in names.items() if (found := re.search(pattern, config)))

"""A complete bench on a GPU: rows, clocks, rates, and work on a stream that the current stream does not wait for."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.integration.bencher.test_bench import bench, rows

SIDE_STREAM = Path(__file__).parents[2] / "packages" / "side_stream"
SPUN_S = 200e-6  # as in cuda.cu

pytestmark = pytest.mark.needs("cuda", "nvcc")


class Benched(NamedTuple):
    """A bench on a GPU: its output, its JSON, and its page, which is empty without matplotlib."""

    printed: str
    report: dict[str, Any]
    page: str

    def cell(self, op: str, direction: str = "forward") -> dict[str, Any]:
        """One of its cells."""
        found: dict[str, Any]
        wanted = (f"side_stream::{op}", direction)
        (found,) = (cell for cell in self.report["cells"] if (cell["op"], cell["direction"]) == wanted)
        return found


@pytest.fixture(scope="module")
def benched(tmp_path_factory: pytest.TempPathFactory) -> Benched:
    folder = tmp_path_factory.mktemp("benched")
    page = ("--html", folder / "page.html") if importlib.util.find_spec("matplotlib") else ()
    ended = bench(SIDE_STREAM, "--device", "cuda", "--rounds", "5", "--json", folder / "report.json", *page)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    report = json.loads((folder / "report.json").read_text())
    return Benched(ended.stdout, report, (folder / "page.html").read_text() if page else "")


def test_every_row_is_timed_but_a_separate_backward_has_no_cuda_graph(benched: Benched) -> None:
    directions = ["forward", "recorded", "backward", "both"]
    assert [cell["direction"] for cell in benched.report["cells"]] == ["forward", *directions]
    for direction in directions:
        found = rows(benched.cell("projected", direction))
        assert list(found) == ["reference", "compiled", "graphed", "native", "floor"]
        statuses = {name: row["status"] for name, row in found.items()}
        expected = dict.fromkeys(found, "timed")
        if direction == "backward":
            expected["graphed"] = "skipped"
            assert found["graphed"]["reason"].startswith("CUDA graphs keep the results of one forward at a time")
        assert statuses == expected, {name: row["reason"] for name, row in found.items()}


def test_work_on_a_separate_stream_is_timed_to_its_end_and_noted(benched: Benched) -> None:
    native = rows(benched.cell("aside"))["native"]
    assert native["other_streams"] is True
    # The kernel measures this time itself, so it is the same on every GPU.
    assert native["seconds"]["median"] > 0.9 * SPUN_S
    assert native["cold_seconds"]["median"] > 0.9 * SPUN_S
    assert "native of aside works on a separate stream" in " ".join(benched.report["notes"])
    others = [row for cell in benched.report["cells"] for row in cell["rows"] if "seconds" in row and row != native]
    assert not any(row["other_streams"] for row in others)


def test_each_row_has_a_cold_time_a_host_time_and_rates(benched: Benched) -> None:
    for cell in benched.report["cells"]:
        assert cell["gpu"]["copied_per_second"] > 0
        for row in cell["rows"]:
            if row["status"] != "timed":
                continue
            for kind in ("seconds", "cold_seconds", "host_seconds", "processor_seconds"):
                assert len(row[kind]["times"]) == row["rounds"] == 5
                assert row[kind]["median"] > 0
            assert row["rates"]["bytes_per_second"] > 0
            assert row["rates"]["of_copy"] > 0


def test_matrix_products_have_separate_rates(benched: Benched) -> None:
    forward = 2 * 256**3
    for direction, flops in (("forward", forward), ("backward", forward), ("both", 2 * forward)):
        cell = benched.cell("projected", direction)
        assert (cell["gpu"]["flops"], cell["gpu"]["product"]) == (flops, "float32")
        assert cell["gpu"]["multiplied_per_second"] > 0
        found = rows(cell)
        assert found["native"]["rates"]["of_product"] > 0
        assert found["floor"]["rates"]["of_product"] is None
    assert benched.cell("aside")["gpu"]["flops"] == 0


def test_the_clocks_are_recorded_or_noted_as_unknown(benched: Benched) -> None:
    unknown = any("the clocks of the GPU are unknown" in note for note in benched.report["notes"])
    assert (benched.report["machine"]["gpu_state"] is None) is unknown
    for cell in benched.report["cells"]:
        for state in (cell["gpu"]["before"], cell["gpu"]["after"]):
            assert unknown or state["sm_max_mhz"] >= state["sm_mhz"] > 0


def test_the_gpu_figures_are_on_the_terminal_and_on_the_page(benched: Benched) -> None:
    for words in ("graphed", "cold", "host", "GB/s", "% of copy", "TFLOP/s", "% of GEMM"):
        assert words in benched.printed
        assert words in benched.page or not benched.page

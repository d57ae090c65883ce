"""The programs that the demonstration runs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def run(command: list[str | Path], **variables: str) -> str:
    """Run a program; when it fails, show what it printed and end."""
    ended = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nfailed with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout

"""The command line: one file per verb."""

from opwright.cli.main import main

__all__ = ["main"]

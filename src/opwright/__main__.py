"""Runs `opwright` as `python -m opwright`."""

from opwright.cli import main

main()

"""Lets `python -m opwright` be the program `opwright`."""

from opwright.cli import main

main()

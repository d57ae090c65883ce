"""Runs the cells of a check: the process of each operator, the judge that it cannot reach, and their messages."""

"""Runs the cells of a check: the process of each operator, the judge that it does not reach, and their messages."""

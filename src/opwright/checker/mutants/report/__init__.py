"""The report of a check of mutants, on a terminal and as a page."""

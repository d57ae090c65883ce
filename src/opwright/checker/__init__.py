"""Checks every operator in every runtime, and reports the results."""

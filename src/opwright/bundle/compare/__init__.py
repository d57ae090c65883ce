"""Runs the goldens, and compares the results of each transform of a model with them."""

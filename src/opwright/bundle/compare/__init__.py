"""Runs the goldens, and compares what each transform of a model gives with them."""

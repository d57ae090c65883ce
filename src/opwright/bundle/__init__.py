"""Writes bundles: a model, its operators, and everything that a process without Python needs to run them."""

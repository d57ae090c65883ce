"""Writes bundles: a model, its operators, and all that a process without Python has to know of them."""

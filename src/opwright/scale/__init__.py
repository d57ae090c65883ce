"""Runs a bundle over many inputs: a map, exactly once, on this machine or a Ray cluster."""

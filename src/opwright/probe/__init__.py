"""Builds and runs the probe, the program without Python in which `opwright check` runs saved models."""

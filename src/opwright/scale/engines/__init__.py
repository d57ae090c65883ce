"""Runs the workers of a map, on this machine or on a Ray cluster."""

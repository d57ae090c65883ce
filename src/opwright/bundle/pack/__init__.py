"""Adds what a model needs to run on another machine: operator libraries, and the host itself."""

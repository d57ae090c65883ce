"""Adds what a model needs to run elsewhere: operator libraries, and the host itself."""

"""Builds and finds the host: the library and the program that run bundles without Python."""

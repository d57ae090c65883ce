"""Builds and calls the host: the program that runs a saved model with its operator libraries, without Python."""

"""Loads built libraries into a process."""

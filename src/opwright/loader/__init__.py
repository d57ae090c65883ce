"""Brings built libraries into a process."""

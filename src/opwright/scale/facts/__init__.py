"""Reads what a map has to know of its bundle."""

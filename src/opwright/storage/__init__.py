"""Puts files and folders in place, whole or not at all, and names what keeps it from doing so."""

"""Puts files and folders in place atomically, and reports why it cannot."""

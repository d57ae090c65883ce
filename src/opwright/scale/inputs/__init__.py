"""Finds the inputs of a map: files, folders, patterns, lists, and rows of tables."""

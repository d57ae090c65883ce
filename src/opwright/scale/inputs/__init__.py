"""Finds the inputs of a map: files, folders, patterns, lists, and the rows of tables."""

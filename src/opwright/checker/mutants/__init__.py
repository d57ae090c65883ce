"""Mutants of a library: its sources with one small change each, which a check must notice."""

"""Proves operators: every operator in every runtime, and what came of it."""

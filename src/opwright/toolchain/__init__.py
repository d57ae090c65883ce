"""Finds the compilers and packages of this machine, composes their flags, and runs them."""

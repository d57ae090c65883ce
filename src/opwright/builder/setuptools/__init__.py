"""Builds the extensions of a setup.py, as `torch.utils.cpp_extension` does."""

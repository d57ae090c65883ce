"""Builds the extensions of a setup.py, in the manner of `torch.utils.cpp_extension`."""

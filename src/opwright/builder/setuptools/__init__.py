"""Builds the extensions of a setup.py, as `torch.utils.cpp_extension` does."""

# The newest setuptools that the tests build with.
NEWEST_TESTED = "84.2.1"

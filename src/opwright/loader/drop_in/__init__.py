"""Runs the builds of projects with opwright in the place of `torch.utils.cpp_extension`."""

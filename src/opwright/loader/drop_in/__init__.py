"""Builds projects with opwright in place of `torch.utils.cpp_extension`."""

"""Transforms a model into a file that the host loads: TorchScript or a package."""

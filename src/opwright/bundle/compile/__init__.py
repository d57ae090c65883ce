"""Transforms a model into what the host loads: TorchScript or a package."""

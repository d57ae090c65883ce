"""The eleven ways in which PyTorch runs an operator, one file each; `runtime` is their protocol."""

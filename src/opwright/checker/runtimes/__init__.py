"""The eleven runtimes in which PyTorch runs an operator, one module each; `runtime` defines their protocol."""

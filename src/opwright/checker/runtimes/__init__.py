"""The eleven ways in which PyTorch runs an operator, one file each.

The runtimes are `eager`, `autograd`, `compile`, `vmap`, `trace`, `script`, `export`, `aoti`, `host_linked`,
`host_script` and `host_aoti`; `runtime` says what one is. The other files are what several of them share: the operator
in a model, graphs and exported programs of it, the fake kernel, gradients, and the process without Python.
"""

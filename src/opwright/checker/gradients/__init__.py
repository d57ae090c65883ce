"""Checks the gradients of an operator in autograd: first and second derivatives, and gradients that are reused."""

"""Checks the gradients of an operator in autograd: first and second derivatives, and repeated backward calls."""

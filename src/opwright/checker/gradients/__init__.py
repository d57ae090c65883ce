"""Checks the gradients of an operator in autograd: first and second derivatives, and what a call leaves for later."""

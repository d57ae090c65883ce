"""Runs the cells of a check: operators in one process, their judge in another, and the messages between them."""

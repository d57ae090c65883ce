"""Checks an operator's behavior beyond the numbers of one call: memory, threads, repetition, its fake kernel."""

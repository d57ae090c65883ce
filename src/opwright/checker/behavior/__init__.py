"""Checks an operator's behavior beyond the results of one call: memory, threads, repetition, its fake kernel."""

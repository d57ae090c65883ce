"""How an operator behaves beyond the numbers of one call: memory, threads, repetition, its fake kernel."""

"""Times operators: against their reference, eager and compiled, and against what no implementation can avoid."""

"""Times operators against their reference (eager and compiled) and against their floor."""

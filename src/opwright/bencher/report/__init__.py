"""The report of a bench, for terminals and browsers, and its progress."""

"""Creates operator libraries that build and pass their check."""

"""A bundle as a function of batches."""

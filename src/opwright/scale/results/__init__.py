"""The folder of results: its files, and what is done."""

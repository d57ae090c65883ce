"""Shows a check to people: its progress while it runs, then a report on the terminal or as a page."""

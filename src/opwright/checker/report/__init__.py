"""Presents a check to users: its progress while it runs, then a report on the terminal or as a page."""

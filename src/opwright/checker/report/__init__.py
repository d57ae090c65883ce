"""What people see of a check: progress while it runs, then a report on the terminal or as a page."""

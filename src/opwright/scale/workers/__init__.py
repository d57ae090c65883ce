"""Drives hosts, and starts them again."""

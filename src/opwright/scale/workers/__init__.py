"""Drives hosts, and restarts them."""

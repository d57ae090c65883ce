"""Reads the facts about a bundle that a map needs."""

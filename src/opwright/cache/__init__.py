"""Caches finished builds by content: finds them again, shares them between users, and removes old ones."""

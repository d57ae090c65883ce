"""Finished builds, kept by content: found again, shared between users, and removed when they are old."""

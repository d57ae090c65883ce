"""The manifest of a bundle: its structure, its text, and the folder that it describes."""

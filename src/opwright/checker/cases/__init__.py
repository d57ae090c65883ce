"""The calls that a check makes: the author's samples and their variations."""

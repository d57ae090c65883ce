"""The calls that a check makes: the author's samples, and what is varied in them."""

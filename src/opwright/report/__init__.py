"""What reports share: the words, the lines on a terminal, the look of a page."""

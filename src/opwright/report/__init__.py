"""Code that all reports share: formatting, lines on a terminal, the page template."""

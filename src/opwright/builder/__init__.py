"""Builds operator libraries into shared objects, once per content."""

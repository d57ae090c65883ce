"""Finds the model, its weights, its sample inputs and their shapes."""

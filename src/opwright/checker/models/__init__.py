"""The operator in models: their source, graphs, exported programs, packages, and the process without Python."""

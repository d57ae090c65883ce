"""Models with the operator: their source, graphs, exported programs, packages, and the process without Python."""

"""New operator libraries: folders that build, and check green, as they stand."""

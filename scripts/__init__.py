"""Tools that make runs, in addition to the project."""

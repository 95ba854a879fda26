"""Exactly once, tried on real processes: under any kill, in any order of files."""

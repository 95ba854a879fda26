"""Exactly once, tried on real processes: whatever is killed, and however files arrive."""

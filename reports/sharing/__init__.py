"""Saved views, share links and tokens of programs."""

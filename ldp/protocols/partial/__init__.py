"""Protocols that protect a part of what a value says, and disclose the rest."""

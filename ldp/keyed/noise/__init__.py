"""Keyed noise that is not an answer: reported places, and cells of presence."""

"""Presence by slot of time and zone: figures and texts. Imports estimates; files and pages are above."""

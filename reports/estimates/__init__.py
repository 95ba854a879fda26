"""Estimates of a window with their errors: queries, small cells, notes, charts of one indicator.

Imports studies and privacy.
"""

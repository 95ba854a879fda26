"""From counts to estimates with their errors: tallies, windows, contrasts, movement.

Imports protocols and privacy; no keys, no reports.
"""

"""From counts to estimates with their errors: tallies, windows, contrasts, movement, scenarios.

Imports protocols and privacy; no keys, no reports.
"""

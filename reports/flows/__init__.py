"""Flows: people by pairs of places, from joint indicators of two parts of which one or both are zones.

Imports crosstab, estimates and studies. No pages and no files: those are in `reports.pages` and
`reports.exports`.
"""

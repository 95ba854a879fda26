"""Extrapolation: totals of the population by market shares of the categories of an indicator. No pages.

May import estimates, studies, privacy and base.
"""

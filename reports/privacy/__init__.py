"""Promises and spending of a study: composition, plan changes, retention.

Statement and budget have folders.
"""

"""What a study promises and spends: composition, plan changes, retention.

Statement and budget have folders.
"""

"""Protocols for numbers: channels and their integer thresholds. No keys, no estimators."""

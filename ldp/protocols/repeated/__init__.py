"""Protocols for values that are reported on many days: channels and their thresholds. No keys."""

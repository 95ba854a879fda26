"""Alerts: rules, channels, sending, also without the main database."""

"""Counts by slot of time and zone: as they cross, and forecasts of them."""

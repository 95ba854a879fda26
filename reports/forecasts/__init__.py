"""Forecasts of published figures by slot and by day, and alerts of crowded zones. Views are in pages."""

"""Reported places as files: tables, pictures, geographic formats."""

"""Arrivals, returns and departures: figures, page and texts. Imports estimates; files are made in exports."""

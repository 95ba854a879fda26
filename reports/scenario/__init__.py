"""Scenarios of presence: questions about chosen days, their answers and texts. Files are made in exports."""

"""Cells of rows: codes, moved masts, cells that nobody listed."""

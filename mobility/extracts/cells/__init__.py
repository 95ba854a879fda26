"""Cells of rows: codes, moved masts, cells that no one listed."""

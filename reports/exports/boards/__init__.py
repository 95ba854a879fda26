"""Boards as files: which board and days, their tiles drawn in rows, as a picture and as a PDF."""

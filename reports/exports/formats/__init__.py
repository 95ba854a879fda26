"""The formats of downloads and their writers."""

"""Comparisons of windows, categories and studies: query, page and texts. Imports estimates."""

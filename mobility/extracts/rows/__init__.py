"""Rows of an extract to coded events: pseudonyms, times, values, what became of each row."""

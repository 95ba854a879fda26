"""Filters and tags of the templates; the words are in the texts of each subject."""

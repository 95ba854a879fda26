"""Common parts of the pages of a batch: access, progress, undoing a day."""

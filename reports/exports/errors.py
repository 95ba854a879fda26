"""Reasons for not making a file."""


class ExportError(ValueError):
    """Says what is wrong and what to do instead; people read it, so it is translated."""

"""Why a file cannot be made."""


class ExportError(ValueError):
    """Says what is wrong and what to do instead; people read it, so it is translated."""

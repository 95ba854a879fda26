"""What stops a command of operations: each text says what is wrong and what to do."""


class OperationsError(Exception):
    """Nothing was changed, unless the text says so."""

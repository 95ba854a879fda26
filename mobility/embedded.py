"""Start what the embedded default needs: secrets, databases, Redis, workers, web server."""


def prepare(argv: list[str]) -> None:
    """Called by manage.py before any command."""

"""Messages for the person at the terminal; standard output stays free for results."""

import sys


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def say_progress(text: str) -> None:
    """Rewrite the current line; silent when no one watches."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()

"""The application of the product with a task that takes longer than anybody waits."""

import time
from pathlib import Path

from mobility.celery import app

__all__ = ["app"]


@app.task(name="wait_long")
def wait_long(began: str) -> None:
    """Say that it has begun, and wait."""
    Path(began).touch()
    time.sleep(300)

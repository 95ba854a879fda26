"""The application of the product with a task of a given duration."""

import time
from pathlib import Path

from mobility.celery import app

__all__ = ["app"]


@app.task(name="wait_long")
def wait_long(began: str) -> None:
    time.sleep(0.5)  # until the first process of the worker has noted it: it gives back only what it knows of
    Path(began).touch()
    time.sleep(300)

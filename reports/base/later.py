"""Functions whose libraries take time and memory that few processes need."""

from collections.abc import Callable
from typing import Any

from django.utils.module_loading import import_string


def later(path: str) -> Callable[..., Any]:
    """A function by its dotted path; its module is loaded when it is first called."""

    def call(*args: Any, **options: Any) -> Any:
        return import_string(path)(*args, **options)

    return call

"""For one test only: every upload meets a bug, whose error quotes the file. The product never does it.

Used through `DJANGO_SETTINGS_MODULE=tests.e2e.crashing.settings`.
"""

from typing import Any, NoReturn

from django.apps import AppConfig


class Crashing(AppConfig):
    name = "tests.e2e.crashing"

    def ready(self) -> None:
        from mobility.services import uploads

        def crash(*args: Any, **options: Any) -> NoReturn:
            rows = next(arg.read(1 << 16) for arg in (*args, *options.values()) if hasattr(arg, "read"))
            raise ValueError(f"cannot make sense of {rows!r}")

        uploads.receive = uploads.append = crash  # type: ignore[assignment]

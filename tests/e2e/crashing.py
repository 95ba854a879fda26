"""The settings of the product with a bug, for one test: every upload fails, and its error quotes the file."""

from django.apps import AppConfig

from mobility.settings import *  # noqa: F403
from mobility.settings import INSTALLED_APPS as REAL_APPS

INSTALLED_APPS = [*REAL_APPS, "tests.e2e.crashing.Crashing"]


class Crashing(AppConfig):
    name = "tests.e2e.crashing"

    def ready(self):
        from mobility.uploads import actions as uploads

        def crash(*args, **options):
            rows = next(arg.read(1 << 16) for arg in (*args, *options.values()) if hasattr(arg, "read"))
            raise ValueError(f"cannot make sense of {rows!r}")

        uploads.receive = uploads.append = crash

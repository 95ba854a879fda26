"""The settings of the product with a bug, for one test: taking files in fails and quotes what it read."""

from mobility.settings import *  # noqa: F403
from mobility.settings import INSTALLED_APPS as REAL_APPS

INSTALLED_APPS = [*REAL_APPS, "tests.e2e.crashing"]

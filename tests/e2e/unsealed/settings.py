"""The settings of the product with encryption switched off, for the test that must find what it wrote."""

from mobility.settings import *  # noqa: F403
from mobility.settings import INSTALLED_APPS as REAL_APPS

INSTALLED_APPS = [*REAL_APPS, "tests.e2e.unsealed"]

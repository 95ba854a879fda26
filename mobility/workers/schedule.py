"""Intervals of jobs without a setting, in seconds."""

from typing import Final

FORGET_EVERY_S: Final = 3600
LEDGER_EVERY_S: Final = 3600
CATCH_UP_EVERY_S: Final = 3600
FORECAST_EVERY_S: Final = 3600
DIGEST_EVERY_S: Final = 3600
